"""What is installed where the service runs: everything but the benchmarks, and all of it works without them."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMAND = "import app; print(app.__file__); from app.cli.main import main; main()"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the sources that does not depend on what is committed or ignored."""
    pytest.importorskip("hatchling")
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    for name in ("app", "docs", "migrations"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=tree, capture_output=True, check=True, timeout=120)  # noqa: S603
    [built] = out.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_installed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """In a folder that is no source tree, so that the installed package alone is found."""
    command = [sys.executable, "-P", "-c", COMMAND, *words]
    environment = {"PYTHONPATH": str(folder), "PATH": ""}
    return subprocess.run(  # noqa: S603
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_the_wheel_has_everything_but_the_benchmarks(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        found = set(archive.namelist())
    packages = {path.name for path in (ROOT / "app").iterdir() if (path / "__init__.py").exists()}
    assert {name for name in packages if f"app/{name}/__init__.py" not in found} == {"benchmark"}
    assert not [name for name in found if name.startswith("app/benchmark")]
    assert any(name.startswith("migrations/versions/") for name in found)
    assert {f"app/docs/{file.name}" for file in (ROOT / "docs").glob("*.md")} <= found
    assert {f"app/docs/pictures/{file.name}" for file in (ROOT / "docs" / "pictures").glob("*.svg")} <= found


def test_the_installed_package_shows_its_own_documents(installed: Path) -> None:
    code = "import app.web.guide as g; print(g._folder()); print(g.guide_page('clinicians').content.decode())"
    environment = {"PYTHONPATH": str(installed), "PATH": ""}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-P", "-c", code], cwd=installed, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith(f"{installed}/app/docs\n"), done.stderr
    assert "<h1" in done.stdout


def test_commands_work_without_the_benchmarks(installed: Path) -> None:
    done = run_installed(installed, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))
    assert " serve " in done.stdout


def test_a_benchmark_that_is_not_installed_is_one_sentence(installed: Path) -> None:
    done = run_installed(installed, "bench", "accuracy")
    assert done.returncode == 1
    assert done.stderr == (
        "normalcy: The benchmarks are not part of the installed package: run `normalcy bench` in a source tree of "
        "Normalcy, in the environment of `make test` or `make paper`.\n"
    )
