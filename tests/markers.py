"""Markers that say what a test needs. `--fast` leaves the marked tests out, `--not-fast` runs only them.

| marker       | the test needs            | set by                                                  |
|--------------|---------------------------|---------------------------------------------------------|
| `gpflow`     | GPflow                    | the test file: `pytestmark = pytest.mark.gpflow`        |
| `tensorflow` | TensorFlow, not GPflow    | the test file: `pytestmark = pytest.mark.tensorflow`    |
| `postgres`   | a PostgreSQL server       | this plugin, from fixtures and their parameters         |
| `browser`    | Chromium                  | this plugin, from fixtures                              |
| `slow`       | more than a second or two | the test file, or this plugin for the folders in `SLOW` |

A file that marks itself `gpflow` is not even imported where GPflow is not installed, so its tests are counted from its
source: in functions, whatever their parameters. A fast run imports no file that marks itself as a whole.

A fast run enforces what it promises. Importing TensorFlow, GPflow or the browser driver raises, and so does starting
PostgreSQL, so that a test without its marker fails instead of slowing everybody down.
"""

import ast
import importlib.abc
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from tests.postgres import FAST_VARIABLE

TESTS = Path(__file__).parent
INSTALLED = importlib.util.find_spec("gpflow") is not None
WHY = "they need GPflow, which runs on Python 3.11 and 3.12 and is not installed here"
NOT_FAST = ("gpflow", "tensorflow", "postgres", "browser", "slow")
# They run first, so that no worker begins one of them when the others have nothing left to do.
LONGEST = (
    "training/test_fit.py",
    "fuzz/test_raw_bytes.py",
    "cli/test_train.py",
    "campaigns/test_http_load.py",
    "campaigns/faults/test_faults.py",
    "test_document_examples.py",
    "web/test_serve_command.py",
    "cli/test_audit.py",
    "cli/test_main.py",
    "openapi/test_clients.py",
    "fuzz/test_schema.py",
)
BLOCKED = ("tensorflow", "gpflow", "playwright.sync_api", "playwright.async_api")
SLOW = ("benchmark", "campaigns", "fuzz")
# A fixture that asks for another one by `request.getfixturevalue` does not show it in a test's list of fixtures; these
# have a parameter that names the database instead.
POSTGRES_FIXTURES = {"server", "migrated_postgres"}
POSTGRES_PARAMETER = "postgresql"
BROWSER_FIXTURES = {"browser", "page"}


class Blocker(importlib.abc.MetaPathFinder):
    """Raises where a fast run imports what only marked tests may import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in BLOCKED:
            raise ModuleNotFoundError(f"A fast run does not import {fullname}: mark the test.", name=fullname)
        return None


def pytest_addoption(parser: pytest.Parser) -> None:
    names = ", ".join(NOT_FAST)
    parser.addoption("--fast", action="store_true", help=f"Leave out the tests marked {names}.")
    parser.addoption("--not-fast", action="store_true", help="Run only the tests that --fast leaves out.")
    parser.addoption("--repetitions", type=int, default=1, help="Times as many random cases where a test draws many.")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fast"):
        os.environ[FAST_VARIABLE] = "true"
        sys.meta_path.insert(0, Blocker())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    left_out = _left_out(config)
    if not left_out or not collection_path.match("test_*.py"):
        return None
    if "slow" in left_out and _is_slow(collection_path):
        return True
    return bool(left_out & set(_own_markers(ast.parse(collection_path.read_text())))) or None


@pytest.hookimpl(tryfirst=True)  # before pytest's own hook, which applies -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for name in _needs(item):
            item.add_marker(name)
    left_out, only_marked = _left_out(config), config.getoption("--not-fast")
    deselected = []
    for item in items:
        markers = {marker.name for marker in item.iter_markers()}
        if markers & left_out or (only_marked and not markers & set(NOT_FAST)):
            deselected.append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in deselected]
    items.sort(key=lambda item: position(item.path))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--fast"):
        terminalreporter.write_line(f"Fast run: left out the tests marked {', '.join(NOT_FAST)}.")
        return
    paths = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    count = sum(map(marked_functions, _test_files(paths)))
    if count and not INSTALLED:
        terminalreporter.write_line(f"Left out {count} test functions: {WHY}.", yellow=True)


def position(file: Path) -> int:
    """Of a file in the order in which files run; those that are not listed follow in the order of their names."""
    return next((index for index, name in enumerate(LONGEST) if file == TESTS / name), len(LONGEST))


def marked_functions(file: Path) -> int:
    """How many test functions of a file need GPflow."""
    module = ast.parse(file.read_text())
    found = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    tests = [function for function in found if function.name.startswith("test_")]
    if "gpflow" in _own_markers(module):
        return len(tests)
    return sum("pytest.mark.gpflow" in map(ast.unparse, test.decorator_list) for test in tests)


def _left_out(config: pytest.Config) -> set[str]:
    if config.getoption("--fast"):
        return set(NOT_FAST)
    return set() if INSTALLED else {"gpflow"}


def _needs(item: pytest.Item) -> Iterator[str]:
    fixtures = set(getattr(item, "fixturenames", ()))
    parameters = getattr(item, "callspec", None)
    values = parameters.params.values() if parameters else ()
    if fixtures & POSTGRES_FIXTURES or any(value == POSTGRES_PARAMETER for value in values if isinstance(value, str)):
        yield "postgres"
    if fixtures & BROWSER_FIXTURES:
        yield "browser"
    if _is_slow(item.path):
        yield "slow"


def _is_slow(path: Path) -> bool:
    return any(path.is_relative_to(TESTS / folder) for folder in SLOW)


def _own_markers(module: ast.Module) -> list[str]:
    """The markers in a file's `pytestmark`, which hold for all of its tests."""
    lists = [
        node for node in module.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    return re.findall(r"pytest\.mark\.(\w+)", " ".join(map(ast.unparse, lists)))


def _test_files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from path.rglob("test_*.py") if path.is_dir() else [path]
