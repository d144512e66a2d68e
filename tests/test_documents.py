"""The documents describe every setting, route, error code, metric and command, and nothing that does not exist."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from typer.main import get_command

import app
from app.cli.main import cli
from app.domain.reliability import DECIDING_ORDER
from app.domain.scopes import Scope
from app.observability import make_metrics
from app.schemas import errors, problem
from app.settings import ENV_FILE, TABLE
from app.store import highest_version, load
from app.web.app import ROUTES
from app.web.guide import NOT_IN_USE, chapter
from tests.documents import ALL, GUIDE, README, ROOT, WRITTEN, commands, spans

NOT_THERE_YET = {"normalcy conformance"}
PAPER_AUTHORS = ["Bindini", "Perini", "Nistri", "Davis", "Frasconi"]
LOGGED = re.compile(r"""\.(?:info|warning|error)\(\s*"([a-z ]+)\"""")


def sources() -> Iterator[tuple[Path, str]]:
    return ((file, file.read_text("utf-8")) for file in (ROOT / "app").rglob("*.py"))


def first_words(called: str) -> set[str]:
    """The first argument of every call of this name anywhere in the code: a text, or a constant of the same file."""
    found: set[str] = set()
    for _, text in sources():
        tree = ast.parse(text)
        constants = {
            target.id: statement.value.value
            for statement in ast.walk(tree)
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == called:
                word = call.args[0]
                found.add(str(word.value if isinstance(word, ast.Constant) else constants[ast.unparse(word)]))
    return found


def leaves(command: Any, words: str = "normalcy") -> dict[str, Any]:
    """Every command that does something, by the words that call it."""
    below = getattr(command, "commands", None)
    if below is None:
        return {words: command}
    return {w: c for name, one in below.items() for w, c in leaves(one, f"{words} {name}").items()}


COMMANDS = leaves(get_command(cli))


def expected() -> dict[str, set[str]]:
    kinds = {kind.slug for kind in problem.PROBLEMS}
    families = make_metrics().registry.collect()
    return {
        "setting": {setting.name for setting in TABLE} | {ENV_FILE},
        "route": {f"{route.method} {route.path}" for route in ROUTES},
        "problem": kinds,
        "error code": set(errors.CODES),
        "reason": set(DECIDING_ORDER),
        "advisory": first_words("Advisory"),
        "metric": {family.name + ("_total" if family.type == "counter" else "") for family in families},
        "scope": set(Scope),
        "command": set(COMMANDS),
    }


EXPECTED = expected()


@pytest.mark.parametrize("kind", EXPECTED)
def test_everything_is_in_the_guide(kind: str) -> None:
    assert EXPECTED[kind]
    assert EXPECTED[kind] - set(spans(GUIDE)) == set()


def test_reasons_and_advisories_are_explained_where_the_answer_is() -> None:
    codes = EXPECTED["reason"] | EXPECTED["advisory"]
    chapters = chapter("answer") + chapter("reliability")
    assert codes - set(spans(chapters)) == set()
    listed = set(re.findall(r"^\| `(\w+)` \|", chapter("reliability"), re.MULTILINE))
    assert listed
    assert listed <= codes


def test_every_line_of_the_log_is_explained() -> None:
    events = {event for file, text in sources() if "structlog" in text for event in LOGGED.findall(text)}
    assert len(events) >= 7
    assert events - set(spans(GUIDE)) == set()


def test_the_kinds_of_problems_marked_as_not_in_use_are_those_that_nothing_raises() -> None:
    names = {value.slug: name for name, value in vars(problem).items() if isinstance(value, problem.ProblemKind)}
    elsewhere = "".join(text for file, text in sources() if file.stem != "problem" and file.parent.name != "guide")
    unused = {slug for slug, name in names.items() if not re.search(rf"\b{name}\b", elsewhere)}
    assert {kind.slug for kind in NOT_IN_USE} == unused


@pytest.mark.parametrize("document", WRITTEN)
def test_no_document_names_a_setting_that_does_not_exist(document: str) -> None:
    known = {setting.name for setting in TABLE} | {f"{setting.name}_FILE" for setting in TABLE if setting.secret}
    assert set(re.findall(r"\bNORMALCY_[A-Z_]+", WRITTEN[document])) <= known | {ENV_FILE}


def is_served(method: str | None, path: str) -> bool:
    patterns = ((route.method, re.sub(r"\\{\w+\\}", r"(?:{\\w+}|[^/{}]+)", re.escape(route.path))) for route in ROUTES)
    return any(method in (None, known) and re.fullmatch(pattern, path) for known, pattern in patterns)


@pytest.mark.parametrize("document", WRITTEN)
def test_no_document_names_an_address_that_is_not_served(document: str) -> None:
    text = WRITTEN[document]
    named = re.findall(r"\b(GET|POST) (/[\w{}./-]*)", text)
    called = re.findall(r"http://127\.0\.0\.1:8000(/[\w{}./-]*)", text.replace("${", "{"))
    named_alone = [span for span in spans(text) if re.fullmatch(r"/(?!var|opt|tmp)[\w{}./-]*", span)]
    paths = [*named, *((None, path) for path in (*called, *named_alone))]
    assert [one for one in paths if not is_served(*one)] == []


@pytest.mark.parametrize("document", WRITTEN)
def test_every_command_in_a_document_exists_with_its_options(document: str) -> None:
    text = WRITTEN[document]
    lines = [line for line in (*commands(text), *spans(text)) if re.search(r"(?:^|\()normalcy [a-z]", line)]
    for line in lines:
        called = line[line.index("normalcy ") :].rstrip(")")
        if called not in NOT_THERE_YET:
            words = shlex.split(called)
            found = next((COMMANDS[" ".join(words[:n])] for n in (3, 2) if " ".join(words[:n]) in COMMANDS), None)
            assert found, called
            options = {option for parameter in found.params for option in parameter.opts} | {"--help"}
            assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options, called
    assert NOT_THERE_YET.isdisjoint(COMMANDS)


def test_scopes_in_examples_exist() -> None:
    given = set(re.findall(r"--scope (\S+)", ALL))
    assert given
    assert {scope.strip(")") for scope in given} <= set(Scope)


def test_metrics_that_the_guide_names_exist() -> None:
    named = set(re.findall(r"`(normalcy_\w+)`", GUIDE))
    assert named == EXPECTED["metric"]


def test_make_targets_that_the_readme_names_are_there() -> None:
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {line.split()[1] for line in (*commands(README), *spans(README)) if line.startswith("make ")}
    assert asked - made == set()


def test_the_readme_says_whom_the_shipped_models_cover() -> None:
    for site in ("SoV", "AA"):
        ranges = load(ROOT / "models_store", site, highest_version(ROOT / "models_store", site)).card.ranges
        youngest, oldest = ranges.age_years.low, ranges.age_years.high
        low, high = ranges.bmi_kg_m2.low, ranges.bmi_kg_m2.high
        text = " ".join(README.replace("> ", "").split())
        for link in (" and", ","):
            ages, bmi = (
                f"ages from {youngest} to {oldest} years",
                f"a body mass index from {low:.1f} to {high:.2f} kg/m²",
            )
            assert f"{ages}{link} {bmi}" in text


def test_every_release_says_which_numbers_moved() -> None:
    releases = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]
    assert releases[0].startswith("[Unreleased]")
    assert f"[{app.__version__}]" in {release.split()[0] for release in releases}
    assert [release.split()[0] for release in releases if "\n### Numbers that moved\n" not in release] == []


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == app.__version__
    [paper] = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == PAPER_AUTHORS
    assert all(name in README for name in (*PAPER_AUTHORS, paper["title"].split(" in ")[0]))


def test_hooks_use_the_tools_of_make_check() -> None:
    [local] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    tools = {hook["entry"].split()[0].removeprefix(".venv/dev/bin/") for hook in local["hooks"]}
    used = set(re.findall(r"\$\(DEV\)/bin/([a-z-]+)", (ROOT / "Makefile").read_text("utf-8")))
    assert local["repo"] == "local"
    assert tools == {"ruff", "mypy", "lint-imports"}
    assert tools <= used
