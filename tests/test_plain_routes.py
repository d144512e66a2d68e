"""`pytest --plain-routes` runs every service without app/web/resolver.py: shown with a copy in which it is broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("app", "migrations", "models_store", "tests")
BROKEN = """

def compile_route(*_: Any) -> Endpoint:
    async def handle(request: Request) -> Response:
        raise RuntimeError("The resolver was used.")

    return handle
"""
WAYS_TO_START = "tests/plain_routes/ways_to_start.py"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree whose resolver raises for every request."""
    copy = tmp_path_factory.mktemp("tree")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    with (copy / "app/web/resolver.py").open("a") as resolver:
        resolver.write(BROKEN)
    return copy


def run(tree: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, WAYS_TO_START]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True).stdout  # noqa: S603


def test_no_way_to_start_a_service_uses_the_resolver(tree: Path) -> None:
    assert "4 passed" in run(tree, "--plain-routes")


def test_otherwise_it_is_used(tree: Path) -> None:
    """One of the ways, because each takes seconds; the others were seen to fail too."""
    assert "1 failed" in run(tree, "-k", "thread")
