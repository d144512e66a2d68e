"""Each rule of the project has a check that fails when the rule is broken."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
REQUIREMENTS = ROOT / "requirements"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)


def pins(name: str) -> set[tuple[str, str]]:
    """Names and versions; a name has several where the version depends on that of Python."""
    return set(PIN.findall((REQUIREMENTS / f"{name}.txt").read_text()))


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).parent / command[0]
    return subprocess.run([tool, *command[1:]], cwd=cwd, capture_output=True, text=True, timeout=300)  # noqa: S603


def planted(tmp_path: Path, file: str, line: str) -> Path:
    """A copy of the code with one more line at the end of a file."""
    shutil.copytree(ROOT / "app", tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / file).open("a") as target:
        target.write(f"\n{line}\n")
    return tmp_path


def test_serving_installs_no_tensorflow() -> None:
    heavy = {"tensorflow", "gpflow", "tf-keras", "keras", "scikit-learn", "matplotlib"}
    assert not heavy & {name for name, _ in pins("serve")}


@pytest.mark.parametrize("larger", ["train", "gpu", "dev"])
def test_every_environment_shares_the_pins_of_serving(larger: str) -> None:
    assert {name for name, _ in pins("serve")} >= {"numpy", "scipy"}
    assert pins(larger) >= pins("serve")


@pytest.mark.parametrize("name", sorted(file.stem for file in REQUIREMENTS.glob("*.txt")))
@pytest.mark.req("REQ-120")
def test_every_pin_has_a_hash_and_no_address(name: str) -> None:
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(PIN.findall(text))
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("app/domain/patient.py", "import app.maths.moments"),  # a package beside it
        ("app/maths/moments.py", "import app.store"),  # a package above
        ("app/runtime/poller.py", "import sqlalchemy"),  # SQL outside the database package
        ("app/audit/verify.py", "from asyncpg import connect"),
        ("app/services/verify_audit.py", "import sqlite3"),
        ("app/cli/serve.py", "def later() -> None:\n    from alembic import command"),
        ("app/cli/serve.py", "import uvicorn"),  # HTTP outside the web package
        ("app/services/manage_models.py", "from starlette.responses import Response"),
        ("app/runtime/runtime.py", "import fastapi"),
        ("app/inference/scoring.py", "import tensorflow"),  # outside of training and the TensorFlow executor
        ("app/inference/tensorflow_executor.py", "import gpflow"),
        ("app/domain/patient.py", "import pydantic"),  # outside of schemas, web and settings
        ("app/database/keys.py", "from pydantic import BaseModel"),
        ("app/web/new_module.py", "import sqlalchemy"),  # in a module that no contract names
    ],
)
def test_import_linter_sees_a_forbidden_import(file: str, line: str, tmp_path: Path) -> None:
    done = run("lint-imports", "--no-cache", cwd=planted(tmp_path, file, line))
    assert done.returncode == 1, done.stdout
    assert "1 broken" in done.stdout


def test_ruff_sees_a_forgotten_print(tmp_path: Path) -> None:
    folder = planted(tmp_path, "app/maths/moments.py", "print(1)")
    done = run("ruff", "check", "--no-cache", "app/maths/moments.py", cwd=folder)
    assert done.returncode == 1
    assert "T201" in done.stdout


@pytest.mark.slow
def test_mypy_sees_a_function_without_types(tmp_path: Path) -> None:
    # In a file that imports only the standard library: the stubs of NumPy alone would take ten seconds.
    folder = planted(tmp_path, "app/clock.py", "def untyped(x):\n    return x")
    done = run("mypy", "--cache-dir", str(tmp_path / "cache"), "app/clock.py", cwd=folder)
    assert done.returncode == 1
    assert "no-untyped-def" in done.stdout
