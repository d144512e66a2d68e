# Two commands do all the set-up:  make serve  (installs what serving needs, starts the service)
#                                  make test   (installs everything, runs the tests)
# Before every commit:             make check  (format, lint, types, layers, fast tests)
# PYTHON=name chooses the Python; without it requirements/find-python.sh looks for one.
SERVE := .venv/serve
TRAIN := .venv/train
PAPER := .venv/paper
DEV := .venv/dev
OPENAPI := .venv/openapi
# A second BLAS thread gains nothing at these sizes, and one thread gives the same digits everywhere.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# An environment is rebuilt when its pins change; .ready is written only after the last step has succeeded.
define environment
	@python=$$(PYTHON="$(PYTHON)" requirements/find-python.sh $(3)) && rm -rf $(1) && "$$python" -m venv $(1)
	$(1)/bin/python -m pip install --quiet --require-hashes -r requirements/build.txt
	$(1)/bin/python -m pip install --quiet --require-hashes -r requirements/$(2).txt
	$(1)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(1)/.ready
endef

$(SERVE)/.ready: requirements/serve.txt requirements/build.txt
	$(call environment,$(SERVE),serve,serve)

$(TRAIN)/.ready: requirements/train.txt requirements/build.txt
	$(call environment,$(TRAIN),train,train)

$(PAPER)/.ready: requirements/paper.txt requirements/build.txt
	$(call environment,$(PAPER),paper,train)

$(DEV)/.ready: requirements/dev.txt requirements/build.txt
	$(call environment,$(DEV),dev,serve)

# The generators of clients need older packages than the service, and Node: an environment of their own.
$(OPENAPI)/.ready: requirements/openapi.txt tests/openapi/package-lock.json
	@python=$$(PYTHON="$(PYTHON)" requirements/find-python.sh serve) && rm -rf $(OPENAPI) && "$$python" -m venv $(OPENAPI)
	$(OPENAPI)/bin/python -m pip install --quiet --require-hashes -r requirements/openapi.txt
	mkdir $(OPENAPI)/node && cp tests/openapi/package.json tests/openapi/package-lock.json $(OPENAPI)/node
	cd $(OPENAPI)/node && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: serve
serve: $(SERVE)/.ready ## install what serving needs, start the service on 127.0.0.1:8000
	NORMALCY_COMMIT=$${NORMALCY_COMMIT:-$$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)} \
		$(SERVE)/bin/normalcy serve

.PHONY: train-env
train-env: $(TRAIN)/.ready ## install what training needs

.PHONY: paper-env
paper-env: $(PAPER)/.ready ## install what the paper's experiments and the benchmarks need

.PHONY: test
test: fast-test slow-test ## install everything, run the tests (on Python 3.13: all but training)

.PHONY: openapi-tools
openapi-tools: $(OPENAPI)/.ready ## install what lints the OpenAPI document and generates clients from it (needs npm)

.PHONY: fast-test
fast-test: $(DEV)/.ready ## run the tests that need no TensorFlow, PostgreSQL or browser
	$(DEV)/bin/python -m pytest --fast -q -n auto --dist loadfile $(FAST_OPTIONS)

.PHONY: slow-test
slow-test: $(DEV)/.ready ## run the tests that `make fast-test` leaves out
	$(DEV)/bin/python -m pytest --not-fast -n auto --dist loadfile

.PHONY: coverage
coverage: $(DEV)/.ready ## run all tests and report the lines of app/ that none of them ran (slower by half)
	$(DEV)/bin/python -m pytest -n auto --dist loadfile --cov

.PHONY: check
check: lint fast-test ## format check, lint, types, layers and fast tests: run it before every commit

.PHONY: format
format: $(DEV)/.ready ## format the code, and fix what ruff can fix
	$(DEV)/bin/ruff check --fix .
	$(DEV)/bin/ruff format .

.PHONY: bench
bench: $(DEV)/.ready ## measure accuracy, speed, answers a second and checkpoints, into docs
	$(DEV)/bin/normalcy bench accuracy --out docs/accuracy.md
	$(DEV)/bin/normalcy bench speed --rounds 31 --out docs/speed.md
	$(DEV)/bin/python -m tests.campaigns.http_load --out docs/http.md
	$(DEV)/bin/python -m tests.campaigns.audit_growth --out docs/audit-growth.md

.PHONY: lint
lint: $(DEV)/.ready ## check the format, then ruff, mypy (strict) and import-linter
	$(DEV)/bin/ruff format --check .
	$(DEV)/bin/ruff check .
	$(DEV)/bin/mypy
	$(DEV)/bin/lint-imports

.PHONY: new-machine
new-machine: ## run the README's first commands on a fresh Debian (SUITE=trixie; needs root and debootstrap)
	tests/campaigns/new_machine.sh $(SUITE)

.PHONY: faults
faults: $(DEV)/.ready ## kill, freeze and starve the service under load, write docs/faults.md (about 15 minutes)
	$(DEV)/bin/python -m tests.campaigns.faults --out docs/faults.md

.PHONY: hostile
hostile: $(DEV)/.ready ## attack the service beside honest load, write docs/hostile-load.md (about 7 minutes)
	$(DEV)/bin/python -m tests.campaigns.hostile_load --out docs/hostile-load.md

# The shipped models. Training never overwrites a version: delete build/models to train again.
COHORT := build/cohort.csv
.PHONY: models
models: $(TRAIN)/.ready ## train the shipped models again, into build/models
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
paper: $(PAPER)/.ready ## run the paper's experiments again, write docs/paper.md (DATA=folder of the UCI files)
	$(PAPER)/bin/normalcy bench paper $(if $(DATA),--data "$(DATA)")

.PHONY: pins
pins: ## compile the hash-pinned requirements again (needs uv)
	for part in serve train gpu paper dev openapi build; do \
		uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
			requirements/$$part.in -o requirements/$$part.txt || exit 1; \
	done
