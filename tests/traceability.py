"""Requirements, hazards and threats as the documents state them, and the tests that show or control them.

A requirement is a row of docs/requirements.md. A hazard or a threat is a section of docs/hazards.md or
docs/threat-model.md, headed by its id, that names requirements by id and tests as `tests/file.py::name`.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
REQUIREMENTS = "docs/requirements.md"
RISKS = ("docs/hazards.md", "docs/threat-model.md")
ROW = re.compile(r"^\| (REQ-\d{3}) \| (.+?) \|$", re.MULTILINE)
SECTION = re.compile(r"^###? ((?:HAZ|THR)-\d{2}): (.+)$", re.MULTILINE)
REQUIREMENT = re.compile(r"\bREQ-\d{3}\b")
TEST = re.compile(r"`(tests/[\w/]+\.py::\w+)`")


@dataclass(frozen=True)
class Risk:
    """A hazard or a threat."""

    name: str
    title: str
    fields: Mapping[str, str]
    requirements: frozenset[str]
    tests: frozenset[str]


def requirements(text: str | None = None) -> list[tuple[str, str]]:
    """Id and sentence, in the order of the document."""
    return ROW.findall(text or (ROOT / REQUIREMENTS).read_text("utf-8"))


def risks(text: str | None = None) -> list[Risk]:
    text = text or "\n".join((ROOT / name).read_text("utf-8") for name in RISKS)
    parts = SECTION.split(text)[1:]
    return [_risk(*parts[k : k + 3]) for k in range(0, len(parts), 3)]


def _risk(name: str, title: str, text: str) -> Risk:
    text = re.split(r"^## ", text, flags=re.MULTILINE)[0]
    items = re.split(r"^- \*\*(\w+)\*\*: ", text, flags=re.MULTILINE)[1:]
    fields = {items[k].lower(): " ".join(items[k + 1].split()) for k in range(0, len(items), 2)}
    return Risk(name, title, fields, frozenset(REQUIREMENT.findall(text)), frozenset(TEST.findall(text)))


@cache
def marked_tests() -> Mapping[str, Sequence[str]]:
    """By `tests/file.py::name` of every test function: the requirements that it is marked with."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return {
        f"{file.relative_to(ROOT)}::{function.name}": tuple(_marked(function))
        for file in files
        for function in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name.startswith("test_")
    }


def _marked(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.req":
            yield from (ast.literal_eval(argument) for argument in decorator.args)


def showing(requirement: str) -> list[str]:
    return [name for name, marked in marked_tests().items() if requirement in marked]
