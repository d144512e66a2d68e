"""`pytest --plain-routes`: all services run without app/web/resolver.py, in this process and in every other one.

It shows that the resolver changes nothing but the speed: the same tests pass with our route class and FastAPI's own
resolution of dependencies. Tests of the resolver itself, and the half with it of tests that run both ways, are marked
`resolver` and left out.
"""

import importlib
import os
import sys
from pathlib import Path

import pytest

OPTION = "--plain-routes"
FOLDER = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="Run all services without app/web/resolver.py.")


def _replace_resolver() -> None:
    """Here, and in every process that inherits the environment."""
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [str(FOLDER), *(path for path in others if path not in ("", str(FOLDER)))]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    importlib.import_module("tests.plain_routes.sitecustomize")


# pytest imports the conftest files of the folders that it is given, and with them the service, before it has read its
# options.
if OPTION in sys.argv:
    _replace_resolver()


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption(OPTION):
        return
    _replace_resolver()
    loaded = sys.modules.get("app.web.resolver")
    if loaded is not None and Path(str(loaded.__file__)).parent != FOLDER:
        raise pytest.UsageError(f"The service was imported before {OPTION} was seen: give it on the command line.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption(OPTION):
        return
    deselected = [item for item in items if item.get_closest_marker("resolver")]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if item not in deselected]
