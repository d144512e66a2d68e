"""Tests that train carry the mark `gpflow`. Where GPflow is not installed they are left out, and one line says so.

A marked file is not even imported, so its tests are counted from its text: in functions, whatever their parameters.
"""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

MARK = "pytest.mark.gpflow"
INSTALLED = importlib.util.find_spec("gpflow") is not None
WHY = "they need GPflow, which runs on Python 3.11 and 3.12 and is not installed here"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if INSTALLED or not collection_path.match("test_*.py"):
        return None
    return _marks_itself(ast.parse(collection_path.read_text())) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if INSTALLED:
        return
    left_out = [item for item in items if item.get_closest_marker("gpflow")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    paths = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    count = sum(map(marked_functions, _test_files(paths)))
    if count and not INSTALLED:
        terminalreporter.write_line(f"Left out {count} test functions: {WHY}.", yellow=True)


def marked_functions(file: Path) -> int:
    module = ast.parse(file.read_text())
    found = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    tests = [function for function in found if function.name.startswith("test_")]
    if _marks_itself(module):
        return len(tests)
    return sum(any(ast.unparse(decorator) == MARK for decorator in test.decorator_list) for test in tests)


def _marks_itself(module: ast.Module) -> bool:
    return any(isinstance(node, ast.Assign) and ast.unparse(node) == f"pytestmark = {MARK}" for node in module.body)


def _test_files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from path.rglob("test_*.py") if path.is_dir() else [path]
