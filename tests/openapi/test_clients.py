"""Clients that are generated from the OpenAPI document pass their type checkers and work against the service."""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.openapi.conftest import TOOLS, tool
from tests.web.serving import READING, Running

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
PACKAGE = "normalcy_client"
# client.py comes from the generator's own template, whatever the document says, and passes on untyped arguments.
# The generator knows neither lines of JSON nor CSV; a line is sent like any other JSON, a table as it is.
CONFIG = """\
content_type_overrides:
  application/x-ndjson: application/json
  text/csv: application/octet-stream
"""
MYPY = f"[mypy]\nstrict = true\n[mypy-{PACKAGE}.client]\ndisable_error_code = arg-type\n"


def run(*command: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(  # noqa: S603 - fixed arguments
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def python_client(document_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that holds the generated package."""
    generator, folder = tool("openapi-python-client"), tmp_path_factory.mktemp("python")
    (folder / "config.yml").write_text(CONFIG)
    arguments = (
        "generate",
        "--config",
        "config.yml",
        "--path",
        str(document_file),
        "--meta",
        "none",
        "--output-path",
        PACKAGE,
        "--fail-on-warning",
    )
    run(generator, *arguments, folder=folder, PATH=f"{TOOLS / 'bin'}:{os.environ['PATH']}")
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


def test_the_python_client_passes_mypy(python_client: Path) -> None:
    (python_client / "mypy.ini").write_text(MYPY)
    run(sys.executable, "-m", "mypy", "-p", PACKAGE, folder=python_client, MYPYPATH=str(python_client), PYTHONPATH="")


def part(name: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.{name}")


def test_the_python_client_scores(python_client: Path, service: Running) -> None:
    body = part("models").ScoreRequest.from_dict(READING)
    score = part("api.scores.score_measurement")
    with part("client").Client(base_url=service.url) as client:
        response = score.sync("SoV", client=client, body=body, x_request_id="generated-python")
    assert response.request_id == "generated-python"
    assert response.score.expected_ns == pytest.approx(service.score().json()["score"]["expected_ns"], rel=1e-8)
    assert response.provenance.model.site == "SoV"


def test_the_python_client_reads_errors(python_client: Path, service: Running) -> None:
    body = part("models").ScoreRequest.from_dict(READING | {"diameter_mm": 4.1})
    with part("client").Client(base_url=service.url) as client:
        answer = part("api.scores.score_measurement").sync_detailed("SoV", client=client, body=body)
    assert answer.status_code == 422
    assert isinstance(answer.parsed, part("models").Problem)
    assert [(error.code.value, error.field) for error in answer.parsed.errors] == [("given_in_cm", "diameter_mm")]


def test_the_python_client_looks_things_up(python_client: Path, service: Running) -> None:
    with part("client").Client(base_url=service.url) as client:
        sites = part("api.look_ups.list_sites").sync(client=client)
        card = part("api.look_ups.get_model_card").sync("SoV", "1.0.0", client=client)
        readiness = part("api.operation.get_readiness").sync(client=client)
    assert {site.site for site in sites.sites} == {"SoV", "AA"}
    assert card.cohort.name == "simulated"
    assert readiness.ready is True


def test_the_typescript_client_scores(document_file: Path, service: Running) -> None:
    """Types are checked strictly, then the compiled program runs in Node."""
    generate, compiler, node = tool("openapi-typescript"), tool("tsc"), shutil.which("node")
    assert node
    with tempfile.TemporaryDirectory(dir=TOOLS / "node") as name:  # inside, so that it finds node_modules
        folder = Path(name)
        run(generate, str(document_file), "--output", "schema.d.ts", "--default-non-nullable=false", folder=folder)
        shutil.copy(HERE / "client.ts", folder)
        options = ("--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext")
        run(compiler, *options, "--skipLibCheck", "false", "client.ts", folder=folder)
        printed = run(node, "client.js", service.url, folder=folder)
    assert printed.splitlines() == ["200 generated-typescript SoV true", "422 given_in_cm"]
