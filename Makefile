# Two commands do all the set-up:  make serve  (installs what serving needs, starts the service)
#                                  make test   (installs everything, runs the tests)
# Before every commit:             make check  (format, lint, types, layers, fast tests)
# PYTHON=name chooses the Python; without it requirements/find-python.sh looks for one.
SERVE := .venv/serve
FILES := .venv/files
PEERS := .venv/peers
TRAIN := .venv/train
PAPER := .venv/paper
DEV := .venv/dev
OPENAPI := .venv/openapi
BROWSER := .venv/browser
# A second BLAS thread gains nothing at these sizes, and one thread gives the same digits everywhere.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# An environment is complete when its last step has written a file named after the content of its pins. So it is rebuilt
# when they change, and not when a checkout only gives them another time.
ready = $(1)/.ready-$(shell cat $(2) | cksum | tr ' ' '-')
SERVE_READY := $(call ready,$(SERVE),requirements/serve.txt requirements/build.txt)
FILES_READY := $(call ready,$(FILES),requirements/files.txt requirements/build.txt)
PEERS_READY := $(call ready,$(PEERS),requirements/peers.txt)
TRAIN_READY := $(call ready,$(TRAIN),requirements/train.txt requirements/build.txt)
PAPER_READY := $(call ready,$(PAPER),requirements/paper.txt requirements/build.txt)
DEV_READY := $(call ready,$(DEV),requirements/dev.txt requirements/build.txt)
OPENAPI_READY := $(call ready,$(OPENAPI),requirements/openapi.txt tests/openapi/package-lock.json)
BROWSER_READY := $(call ready,$(BROWSER),tests/web/package-lock.json)

# Where uv is on the path it installs, several times faster, and checks the same hashes. It does not read pip's settings,
# so pip takes over where uv cannot reach the packages. `make UV= ...` uses pip alone. Unlike pip, uv leaves compiling to
# the first import, which takes a third of the time, unless Python is set not to store what it compiles.
UV := $(shell command -v uv 2>/dev/null)
uv_install = $(UV) pip install --quiet $(if $(PYTHONDONTWRITEBYTECODE),--compile-bytecode) --python $(1)/bin/python
install = $(if $(UV),$(uv_install) $(2) || )$(1)/bin/python -m pip install --quiet $(2)

define environment
	@python=$$(PYTHON="$(PYTHON)" requirements/find-python.sh $(3)) && rm -rf $(1) && "$$python" -m venv $(1)
	$(call install,$(1),--require-hashes -r requirements/build.txt)
	$(call install,$(1),--require-hashes -r requirements/$(2).txt)
	$(call install,$(1),--no-deps --no-build-isolation --editable .)
	touch $@
endef

$(SERVE_READY):
	$(call environment,$(SERVE),serve,serve)

$(FILES_READY):
	$(call environment,$(FILES),files,serve)

# Other model servers need other packages than the service: an environment of their own.
$(PEERS_READY):
	@python=$$(PYTHON="$(PYTHON)" requirements/find-python.sh serve) && rm -rf $(PEERS) && "$$python" -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --require-hashes -r requirements/peers.txt
	touch $@

$(TRAIN_READY):
	$(call environment,$(TRAIN),train,train)

$(PAPER_READY):
	$(call environment,$(PAPER),paper,train)

$(DEV_READY):
	$(call environment,$(DEV),dev,serve)

# The generators of clients need older packages than the service, and Node: an environment of their own.
$(OPENAPI_READY):
	@python=$$(PYTHON="$(PYTHON)" requirements/find-python.sh serve) && rm -rf $(OPENAPI) && "$$python" -m venv $(OPENAPI)
	$(call install,$(OPENAPI),--require-hashes -r requirements/openapi.txt)
	mkdir $(OPENAPI)/node && cp tests/openapi/package.json tests/openapi/package-lock.json $(OPENAPI)/node
	cd $(OPENAPI)/node && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

$(BROWSER_READY):
	rm -rf $(BROWSER) && mkdir -p $(BROWSER) && cp tests/web/package.json tests/web/package-lock.json $(BROWSER)
	cd $(BROWSER) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: serve
serve: $(SERVE_READY) ## install what serving needs, start the service on 127.0.0.1:8000
	NORMALCY_COMMIT=$${NORMALCY_COMMIT:-$$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)} \
		$(SERVE)/bin/normalcy serve

.PHONY: files-env
files-env: $(FILES_READY) ## install what scoring Parquet files and Dask clusters need

.PHONY: peers-env
peers-env: $(PEERS_READY) ## install the model servers that `make bench` compares with

.PHONY: train-env
train-env: $(TRAIN_READY) ## install what training needs

.PHONY: paper-env
paper-env: $(PAPER_READY) ## install what the paper's experiments and the benchmarks need

.PHONY: test
test: fast-test slow-test ## install everything, run the tests (on Python 3.13: all but training)

.PHONY: openapi-tools
openapi-tools: $(OPENAPI_READY) ## install what lints the OpenAPI document and generates clients from it (needs npm)

.PHONY: browser-tools
browser-tools: $(BROWSER_READY) ## install what checks the accessibility of the pages (needs npm)

.PHONY: screenshots
screenshots: $(DEV_READY) ## take the pictures of the pages in docs/screenshots again (needs Chromium)
	$(DEV)/bin/python -m tests.web.screenshots

.PHONY: fast-test
fast-test: $(DEV_READY) ## run the tests that need no TensorFlow, PostgreSQL or browser
	$(DEV)/bin/python -m pytest --fast -q -n auto --dist loadfile $(FAST_OPTIONS)

# The slow tests wait for databases, services and browsers for 4 seconds of 10: one worker more than processors.
SLOW_WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
.PHONY: slow-test
slow-test: $(DEV_READY) ## run the tests that `make fast-test` leaves out
	$(DEV)/bin/python -m pytest --not-fast -n $(SLOW_WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: plain-test
plain-test: $(DEV_READY) ## run the tests without the faster resolver of dependencies, app/web/resolver.py (all but training)
	$(DEV)/bin/python -m pytest --plain-routes -m "not gpflow" --ignore tests/benchmark -n $(SLOW_WORKERS) --dist loadfile

.PHONY: coverage
coverage: $(DEV_READY) ## run all tests and report the lines of app/ that none of them ran (slower by half)
	$(DEV)/bin/python -m pytest -n auto --dist loadfile --cov

.PHONY: check
check: lint fast-test ## format check, lint, types, layers and fast tests: run it before every commit

.PHONY: format
format: $(DEV_READY) ## format the code, and fix what ruff can fix
	$(DEV)/bin/ruff check --fix .
	$(DEV)/bin/ruff format .

.PHONY: bench
bench: $(DEV_READY) $(PEERS_READY) ## measure accuracy, speed, services, batches, files, the audit and pictures, into docs
	$(DEV)/bin/normalcy bench accuracy --out docs/accuracy.md
	$(DEV)/bin/normalcy bench speed --rounds 31 --out docs/speed.md
	$(DEV)/bin/python -m tests.campaigns.http_load --out docs/http.md
	$(DEV)/bin/python -m tests.campaigns.audit_growth --out docs/audit-growth.md
	$(DEV)/bin/python -m tests.campaigns.audit_storage --out docs/audit-storage.md
	$(DEV)/bin/python -m tests.campaigns.performance --out docs/performance.md
	$(DEV)/bin/python -m tests.campaigns.charts --out docs/charts.md

.PHONY: docs
docs: $(DEV_READY) ## write the generated parts of the documents again, after a change of what they list
	$(DEV)/bin/python -m tests.generated_documents

.PHONY: sbom
sbom: $(DEV_READY) ## write the software bills of materials (CycloneDX) into dist/sbom
	$(DEV)/bin/python -m tests.supply.sbom

# `--strict`: a package that could not be looked up is a failure, not a success.
.PHONY: audit-dependencies
audit-dependencies: $(DEV_READY) ## look up known vulnerabilities of all pinned packages (needs the internet)
	for part in serve train gpu files dev openapi peers build uv; do \
		$(DEV)/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements/$$part.txt || exit 1; \
	done

.PHONY: lint
lint: $(DEV_READY) ## check the format, then ruff, mypy (strict) and import-linter
	$(DEV)/bin/ruff format --check .
	$(DEV)/bin/ruff check .
	$(DEV)/bin/mypy
	$(DEV)/bin/lint-imports

.PHONY: fuzz
fuzz: $(DEV_READY) ## send 100,000 hostile requests instead of the 6,000 of `make test`, and ten times the documented ones
	$(DEV)/bin/python -m pytest tests/fuzz -k "hostile_bytes or documented" --fuzz-requests 100000

.PHONY: new-machine
new-machine: ## run the README's first commands on a fresh Debian (SUITE=trixie; needs root and debootstrap)
	tests/campaigns/new_machine.sh $(SUITE)

.PHONY: faults
faults: $(DEV_READY) ## run the rows of the fault campaign that have no result yet (hours in all), write docs/faults.md
	$(DEV)/bin/python -m tests.campaigns.faults; held=$$?; \
		$(DEV)/bin/python -m tests.campaigns.faults --render && exit $$held

.PHONY: hostile
hostile: $(DEV_READY) ## attack the service beside honest load, write docs/hostile-load.md (about 7 minutes)
	$(DEV)/bin/python -m tests.campaigns.hostile_load --out docs/hostile-load.md

# The shipped models. Training never overwrites a version: delete build/models to train again.
COHORT := build/cohort.csv
.PHONY: models
models: $(TRAIN_READY) ## train the shipped models again, into build/models
	mkdir -p build
	test -e $(COHORT) || $(TRAIN)/bin/normalcy cohort simulate --n 1110 --seed 1 --out $(COHORT)
	for site in SoV AA; do \
		$(TRAIN)/bin/normalcy train $(COHORT) --models build/models --site $$site --version 1.0.0 \
			--diameter-column $${site}_mm --cohort simulated \
			--description "1110 simulated healthy people, seed 1 (normalcy cohort simulate)" \
			--edge leading --phase end-diastole --modality TTE --seed 1 || exit 1; \
	done

# About two hours on two cores; finished parts are saved in build/paper and not run again.
.PHONY: paper
paper: $(PAPER_READY) ## run the paper's experiments again, write docs/paper.md (DATA=folder of the UCI files)
	$(PAPER)/bin/normalcy bench paper $(if $(DATA),--data "$(DATA)")

.PHONY: pins
pins: ## compile the hash-pinned requirements again (needs uv)
	for part in serve train gpu paper files dev openapi peers build uv; do \
		uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
			requirements/$$part.in -o requirements/$$part.txt || exit 1; \
	done
