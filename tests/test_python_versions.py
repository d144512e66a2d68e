"""Which Python an environment is made of, and what is left out where GPflow does not run."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.documents import WRITTEN
from tests.markers import marked_functions

ROOT = Path(__file__).parent.parent
FIND_PYTHON = ROOT / "requirements" / "find-python.sh"
BROKEN = "#!/bin/sh\nexit 127\n"  # the stub of a version manager for a version that is not chosen


def stub(version: str, *, with_venv: bool = True) -> str:
    """What a Python of this version answers to the script's two questions."""
    venv = 0 if with_venv else 1
    return f'#!/bin/sh\ncase "$2" in *version_info*) echo {version} ;; *ensurepip*) exit {venv} ;; esac\n'


def find(folder: Path, pythons: dict[str, str], *goal: str, **chosen: str) -> subprocess.CompletedProcess[str]:
    for name, script in pythons.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    command = ["/bin/sh", str(FIND_PYTHON), *goal]
    return subprocess.run(command, env={"PATH": str(folder), **chosen}, capture_output=True, text=True)  # noqa: S603


@pytest.mark.parametrize(
    ("pythons", "goal", "found"),
    [
        ({"python3": stub("3.13")}, "serve", "python3"),
        ({"python3": stub("3.14")}, "serve", "python3"),
        ({"python3": stub("3.13"), "python3.12": stub("3.12")}, "serve", "python3.12"),
        ({"python3": stub("3.13"), "python3.12": stub("3.12")}, "train", "python3.12"),
        ({"python3": stub("3.11"), "python3.11": BROKEN, "python3.12": BROKEN}, "train", "python3"),
        ({"python3": stub("3.10"), "python3.13": stub("3.13")}, "serve", "python3.13"),
        ({"python3": stub("3.12", with_venv=False), "python3.13": stub("3.13")}, "serve", "python3.13"),
    ],
)
def test_the_first_python_that_can_be_used_is_taken(
    pythons: dict[str, str], goal: str, found: str, tmp_path: Path
) -> None:
    done = find(tmp_path, pythons, goal)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path / found}\n", "")


@pytest.mark.parametrize(
    ("pythons", "goal", "named"),
    [
        ({}, "serve", "apt install python3 python3-venv"),
        ({"python3": stub("3.9")}, "serve", "3.11, 3.12 or 3.13"),
        ({"python3": BROKEN}, "serve", "3.11, 3.12 or 3.13"),
        ({"python3": stub("3.13", with_venv=False)}, "serve", "apt install python3-venv"),
        ({"python3.12": stub("3.12", with_venv=False)}, "serve", "apt install python3.12-venv"),
        ({"python3": stub("3.13")}, "train", "Training needs Python 3.11 or 3.12"),
    ],
)
def test_without_one_a_single_sentence_says_what_to_install(
    pythons: dict[str, str], goal: str, named: str, tmp_path: Path
) -> None:
    done = find(tmp_path, pythons, goal)
    assert (done.returncode, done.stdout) == (1, "")
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_python_that_is_named_is_the_only_one_tried(tmp_path: Path) -> None:
    pythons = {"python3.11": stub("3.11"), "mine": stub("3.13")}
    assert find(tmp_path, pythons, "serve", PYTHON="mine").stdout == f"{tmp_path / 'mine'}\n"
    assert find(tmp_path, pythons, "train", PYTHON="mine").returncode == 1


def test_make_train_env_refuses_before_it_touches_anything(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text(stub("3.13"))
    (tmp_path / "mine").chmod(0o755)
    folder = tmp_path / "train"
    folder.mkdir()
    command = ["make", "train-env", f"PYTHON={tmp_path / 'mine'}", f"TRAIN={folder}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)  # noqa: S603
    assert done.returncode == 2
    assert done.stderr.startswith("Training needs Python 3.11 or 3.12")
    assert folder.exists()


HIDDEN = """
import sys
import pytest

sys.modules["gpflow"] = None  # as if it were not installed
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "tests/training", "tests/benchmark"]))
"""


@pytest.mark.slow
def test_without_gpflow_the_rest_is_collected_and_one_line_counts_what_is_left_out() -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", HIDDEN], cwd=ROOT, env=dict(os.environ), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Left out")]
    files = [*(ROOT / "tests" / "training").rglob("test_*.py"), *(ROOT / "tests" / "benchmark").rglob("test_*.py")]
    assert line.startswith(f"Left out {sum(map(marked_functions, files))} test functions: they need GPflow")
    assert "tests/training/test_table.py" in done.stdout
    assert "tests/training/test_fit.py" not in done.stdout


def test_marks_on_a_file_on_a_function_and_on_neither_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    tests = "def test_a(): ...\nclass TestB:\n    async def test_b(self): ...\ndef helper(): ...\n"
    file.write_text("pytestmark = pytest.mark.gpflow\n" + tests)
    assert marked_functions(file) == 2
    file.write_text("@pytest.mark.gpflow\n" + tests)
    assert marked_functions(file) == 1
    file.write_text(tests)
    assert marked_functions(file) == 0


ACCEPTED = ("3.11", "3.12", "3.13", "3.14")
TESTED = ACCEPTED[:-1]


def test_everything_says_the_same_about_the_versions() -> None:
    from packaging.specifiers import SpecifierSet

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    allowed = SpecifierSet(project["requires-python"])
    assert tuple(f"3.{minor}" for minor in range(8, 20) if f"3.{minor}.1" in allowed) == ACCEPTED
    table = re.findall(r"^\| ([\d., ]+) \| [\d.]+ \| (.+?) \|", WRITTEN["docs/new-machine.md"], re.MULTILINE)
    serving = {version: serves for versions, serves in table for version in versions.split(", ")}
    assert tuple(serving) == ACCEPTED
    assert tuple(version for version, serves in serving.items() if serves == "yes") == TESTED
    for name in ("README.md", "docs/operators.md"):
        assert f"Python {TESTED[0]} to {TESTED[-1]}" in WRITTEN[name]
        assert re.search(rf"Python {ACCEPTED[-1]} is accepted, but was \[?not tested", WRITTEN[name])


def test_the_pins_cover_every_python_that_is_served_on() -> None:
    """A pin that a Python excludes is quietly not installed: NumPy must be there for each, once."""
    from packaging.requirements import Requirement

    text = (ROOT / "requirements" / "serve.txt").read_text().replace("\\\n", "")
    lines = [Requirement(re.split(r"\s+--hash", line)[0]) for line in text.splitlines() if re.match(r"\w", line)]
    for version in ACCEPTED:
        here = {"python_version": version, "python_full_version": f"{version}.0", "sys_platform": "linux"}
        chosen_pins = [pin.name for pin in lines if pin.marker is None or pin.marker.evaluate(here)]
        assert len(chosen_pins) == len(set(chosen_pins)), version
        assert set(chosen_pins) == {pin.name for pin in lines} - {"colorama"}, version
