"""`make` builds an environment when the content of its pins changes, and only then, with uv if it can."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What `make` reads, with an environment that is complete."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    found = re.search(r"^touch (\S+/\.ready\S*)$", planned(tmp_path), re.MULTILINE)
    assert found
    ready = tmp_path / found[1]
    ready.parent.mkdir(parents=True)
    ready.touch()
    os.utime(ready, (0, 0))
    return tmp_path


def planned(tree: Path, target: str = "lint", *variables: str) -> str:
    """The commands that `make` would run."""
    command = ["make", "-n", target, *variables]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def test_newer_pins_with_the_same_content_build_nothing(tree: Path) -> None:
    for file in (tree / "requirements").iterdir():
        file.touch()
    assert "pip install" not in planned(tree)
    assert "ruff check" in planned(tree)


@pytest.mark.parametrize("name", ["dev.txt", "build.txt"])
def test_other_pins_build_the_environment_again(tree: Path, name: str) -> None:
    with (tree / "requirements" / name).open("a") as file:
        file.write("# changed\n")
    assert "pip install" in planned(tree)


def test_pins_of_another_environment_do_not_matter(tree: Path) -> None:
    (tree / "requirements/train.txt").write_text("")
    assert "pip install" not in planned(tree)


def test_every_target_can_be_made() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"serve", "lint", "slow-test"} <= set(targets)
    assert [target for target in targets if not planned(ROOT, target)] == []


@pytest.mark.req("REQ-120")
def test_without_uv_pip_installs_and_checks_the_hashes(tree: Path) -> None:
    installs = [line for line in planned(tree, "train-env", "UV=").splitlines() if " install " in line]
    assert len(installs) == 3
    assert all(line.startswith(".venv/train/bin/python -m pip install --quiet ") for line in installs)
    assert [line for line in installs if " -r " in line and " --require-hashes " not in line] == []


# Instead of a Python: makes an environment whose Python writes down what it was called with.
PYTHON = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python"
elif [ "$1" = -c ]; then
    case $2 in *version_info*) echo 3.11 ;; esac
else
    echo "pip $*" >> {calls}
fi
"""
UV = """#!/bin/sh
echo "uv $*" >> {calls}
exit {status}
"""


@pytest.mark.parametrize(
    ("status", "tools"), [(0, ["uv", "uv", "uv"]), (2, ["uv", "pip", "uv", "pip", "uv", "pip"])], ids=["works", "fails"]
)
def test_uv_installs_where_it_is_on_the_path_and_pip_where_it_fails(tree: Path, status: int, tools: list[str]) -> None:
    calls, programs = tree / "calls", tree / "programs"
    programs.mkdir()
    for name, script in {"python3.11": PYTHON, "uv": UV}.items():
        (programs / name).write_text(script.format(calls=calls, status=status))
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    subprocess.run(["make", "train-env"], cwd=tree, env=environment, check=True)  # noqa: S607
    lines = calls.read_text().splitlines()
    assert [line.split()[0] for line in lines] == tools
    of_files = [line for line in lines if " -r " in line]
    assert of_files
    assert all(" --require-hashes " in line for line in of_files)
