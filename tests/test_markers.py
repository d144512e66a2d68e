"""A fast run leaves out what is marked, and fails a test that needs more than it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.markers import LONGEST, position
from tests.postgres import FAST_VARIABLE

ROOT = Path(__file__).parent.parent
FIXTURES = """
import pytest

@pytest.fixture
def server(): ...

@pytest.fixture(params=["postgresql", "sqlite"])
def settings(request): return request.param

@pytest.fixture
def browser(): ...
"""
NEEDS_MORE = """
from tests.postgres import postgres_server, private_server

def test_a():
    import tensorflow

def test_b():
    from playwright.sync_api import sync_playwright

def test_c():
    with postgres_server():
        pass

def test_d():
    with private_server():
        pass
"""


def run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Pytest on one file with the project's plugin and settings, in a process of its own."""
    (folder / "test_planted.py").write_text(text)
    own = [
        "-p",
        "tests.markers",
        "-p",
        "no:cacheprovider",
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(folder),
    ]
    others = {name: value for name, value in os.environ.items() if name != FAST_VARIABLE}
    environment = others | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", *own, "-q", *options, str(folder)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)  # noqa: S603


def selected(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_a_test_that_needs_more_than_it_says_fails_in_a_fast_run(tmp_path: Path) -> None:
    done = run(tmp_path, NEEDS_MORE, "--fast")
    assert "4 failed" in done.stdout
    assert "A fast run does not import tensorflow" in done.stdout
    assert "A fast run does not import playwright.sync_api" in done.stdout
    assert len(re.findall("^E .*A fast run starts no PostgreSQL", done.stdout, re.MULTILINE)) == 2


def test_a_file_that_marks_itself_is_not_imported_in_a_fast_run(tmp_path: Path) -> None:
    for marker in ("gpflow", "tensorflow", "postgres", "browser", "slow"):
        text = f"import pytest\npytestmark = [pytest.mark.{marker}]\nraise RuntimeError('imported')\n"
        (tmp_path / f"test_{marker}.py").write_text(text)
    done = run(tmp_path, "def test_it(): ...\n", "--fast")
    assert "1 passed" in done.stdout
    assert done.returncode == 0, done.stdout


def test_a_fast_run_and_the_rest_take_every_test_once(tmp_path: Path) -> None:
    text = FIXTURES + (
        "def test_a(settings): ...\n"
        "def test_b(server): ...\n"
        "def test_c(browser): ...\n"
        "@pytest.mark.slow\ndef test_d(): ...\n"
        "def test_e(): ...\n"
    )
    assert selected(run(tmp_path, text, "--fast", "--collect-only")) == ["test_a[sqlite]", "test_e"]
    rest = ["test_a[postgresql]", "test_b", "test_c", "test_d"]
    assert selected(run(tmp_path, text, "--not-fast", "--collect-only")) == rest


@pytest.mark.parametrize(
    ("marker", "chosen"),
    [
        ("postgres", ["test_a[postgresql]", "test_b"]),
        ("browser", ["test_c"]),
        ("not postgres", ["test_a[sqlite]", "test_c"]),
    ],
)
def test_markers_that_follow_from_fixtures_can_be_selected(marker: str, chosen: list[str], tmp_path: Path) -> None:
    text = FIXTURES + "def test_a(settings): ...\ndef test_b(server): ...\ndef test_c(browser): ...\n"
    done = run(tmp_path, text, "-m", marker, "--collect-only")
    assert selected(done) == chosen


def test_the_longest_files_run_first() -> None:
    paths = [ROOT / "tests" / name for name in LONGEST]
    assert all(path.is_file() for path in paths)
    assert sorted([Path(__file__), *reversed(paths)], key=position) == [*paths, Path(__file__)]


def test_a_marker_that_nobody_declared_is_an_error(tmp_path: Path) -> None:
    assert run(tmp_path, "import pytest\n@pytest.mark.sloow\ndef test_a(): ...\n").returncode != 0
