"""The OpenAPI document of a running service, as a file, and the tools that read it.

`make openapi-tools` installs the tools into .venv/openapi: they need versions that the service must not have.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.settings import load_settings
from tests.web.conftest import models_dir  # noqa: F401 - a fixture
from tests.web.serving import Running, serving

TOOLS = Path(__file__).parents[2] / ".venv" / "openapi"


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Running]:  # noqa: F811
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path_factory.mktemp("data"))})
    with serving(settings, models_dir) as running:
        yield running


@pytest.fixture(scope="session")
def document(service: Running) -> Any:
    return service.client.get("/openapi.json").json()


@pytest.fixture(scope="session")
def document_file(document: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("openapi") / "openapi.json"
    path.write_text(json.dumps(document))
    return path


def tool(name: str) -> str:
    """The path of an installed tool. Where it is missing the test is skipped, but fails in CI."""
    found = next(
        (path for path in (TOOLS / "bin" / name, TOOLS / "node/node_modules/.bin" / name) if path.exists()), None
    )
    if found is None:
        reason = f"{name} is not installed: run `make openapi-tools` (needs npm)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return str(found)
