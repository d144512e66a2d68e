"""The documents describe every setting, route, error code, metric and command, and nothing that does not exist."""

import ast
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from typer.main import get_command

import app
from app.cli.commands import cli
from app.database.sqlite import FILE_NAME
from app.domain.scopes import Scope
from app.domain.score import DECIDING_ORDER
from app.observability import make_metrics
from app.schemas import problem, validation
from app.settings import ENV_FILE, TABLE, load_settings
from app.store import highest_version, load
from app.web.app import ROUTES
from tests.documents import ALL, DOCS, GUIDE, README, ROOT, WRITTEN, commands, spans
from tests.generated_documents import PARTS, generated, parts_of
from tests.web.serving import READING, serving
from tests.worked_examples import STORE, answered, document_pictures

LOGINS = {"normalcy_service", "normalcy_manager", "normalcy_admin"}  # of PostgreSQL
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
        "error code": set(validation.CODES),
        "reason": set(DECIDING_ORDER),
        "advisory": first_words("Advisory"),
        "metric": {family.name + ("_total" if family.type == "counter" else "") for family in families},
        "scope": set(Scope),
        "command": set(COMMANDS),
    }


EXPECTED = expected()


def section(document: str, heading: str) -> str:
    """The text below a heading of the second level."""
    return re.split(r"^## ", document.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]


WITH_PARTS = [
    pytest.param(name, marks=pytest.mark.slow if "generated: example-" in text else [])  # those start a service
    for name, text in DOCS.items()
    if parts_of(text)
]


@pytest.mark.parametrize("document", WITH_PARTS)
def test_generated_parts_are_what_the_code_says(document: str) -> None:
    assert generated(DOCS[document]) == DOCS[document], f"{document} is out of date: run `make docs` and commit it"


@pytest.mark.slow
def test_the_pictures_are_what_the_service_draws() -> None:
    files = {file.name: file.read_text("utf-8") for file in (ROOT / "docs" / "pictures").iterdir()}
    assert files == document_pictures(), "run `make docs` and commit docs/pictures"


def test_every_generated_part_is_used_once() -> None:
    used = [part for text in DOCS.values() for part in parts_of(text)]
    assert sorted(used) == sorted(PARTS)


@pytest.mark.slow
def test_what_the_worked_examples_are_said_to_show() -> None:
    """The words around the generated tables of docs/clinicians.md."""
    seen = answered().scores
    score = {name: answer["score"] for name, answer in seen.items() if answer["score"]}
    assert score["within"]["hdi"]["high"] < 2
    assert round(score["uncertain"]["expected_ns"], 2) == 1.94
    assert score["uncertain"]["hdi"]["low"] < 2 < score["uncertain"]["hdi"]["high"]
    assert 0.28 < score["uncertain"]["exceedance"][0]["probability"] < 1 / 3
    assert score["above"]["hdi"]["low"] > 3
    assert score["above"]["hdi"]["width"] > score["uncertain"]["hdi"]["width"]
    assert score["small-woman"]["position"] == "above_2"
    assert seen["small-woman"]["input"]["diameter_mm"] == 36
    assert score["large-man"]["position"] == "within"
    assert [a["code"] for a in seen["large-man"]["advisories"]] == ["absolute_diameter"]
    assert seen["large-man"]["reliability"]["reasons"][0]["code"] == "wide_interval"
    assert [reason["code"] for reason in seen["caution"]["reliability"]["reasons"]] == ["outside_training_range"]
    assert seen["withheld"]["score"] is None
    assert "5 years old" in seen["withheld"]["summary"]["clinician"]
    widths = [seen["observer"][part]["hdi"]["width"] for part in ("score_with_measurement_error", "score")]
    assert 3.8 < widths[0] / widths[1] < 4.6


def test_the_figures_of_the_statisticians_page_are_those_of_the_reports() -> None:
    """Rows of the reports, and how the page words them."""
    page, coverage, gates = (
        " ".join(DOCS[f"docs/{name}.md"].split()) for name in ("statisticians", "coverage", "gates")
    )
    sov, _, aa = coverage.partition("## AA")
    for site, rows in (
        (sov, ["| everybody | 2000 | 95.6% | 0.7% | 80.8%, 100.0% |"]),
        (aa, ["| everybody | 2000 | 95.0% |", "| 60 to 85 years | 303 | 92.1% | 1.8% | 50.7%, 100.0% |"]),
    ):
        assert all(row in site for row in rows)
    assert "95.6% (SoV) and 95.0% (AA)" in page
    assert "from 81 to 100%, and for AA above 60 years from 51 to 100%" in page
    assert "| upper tail of women doubled | 8.1% | 45.6% | 100.0% |" in gates
    assert "8% of trainings with 300 people, 46% with 1110 and always with 5000" in page
    assert "log-normal people, Gaussian model | 1.8% | 10.1% | 85.5% |" in gates
    assert "10% of trainings with 1110 people and in 86% with 5000" in page


def test_the_capacity_on_the_operators_page_is_that_of_the_measurement() -> None:
    measured = DOCS["docs/performance.md"].partition("| answers a second |")[2]
    for database in ("SQLite", "PostgreSQL"):
        row = re.search(rf"^\| {database} \| (.*) \|$", measured, re.MULTILINE)
        assert row
        one, _, many = (int(cell.split()[0].replace(",", "")) for cell in row[1].split(" | "))
        assert 800 < one < 1500, "about a thousand"
        assert 4000 < many < 5500, "four to five thousand"
    worded = "about a thousand scores a second on\none connection and four to five thousand on 64"
    assert worded in DOCS["docs/operators.md"]


@pytest.mark.slow
def test_the_audit_grows_as_the_operators_page_says(tmp_path: Path) -> None:
    scores = 400
    with serving(load_settings({"NORMALCY_DATA_DIR": str(tmp_path)}), STORE) as running:
        for number in range(scores):
            assert running.score({**READING, "diameter_mm": 30 + number / 50}).status_code == 200
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as database:
        database.execute("VACUUM")
    assert "about 1.3 kB for each score" in DOCS["docs/operators.md"]
    assert 1100 < (tmp_path / FILE_NAME).stat().st_size / scores < 1500


@pytest.mark.parametrize("kind", EXPECTED)
def test_everything_is_in_the_guide(kind: str) -> None:
    assert EXPECTED[kind]
    assert EXPECTED[kind] - set(spans(GUIDE)) == set()


def test_reasons_and_advisories_are_explained_where_the_answer_is() -> None:
    codes = EXPECTED["reason"] | EXPECTED["advisory"]
    reliability = section(DOCS["docs/reference.md"], "Reliability")
    advisories = section(DOCS["docs/clinicians.md"], "Advisories")
    assert EXPECTED["reason"] - set(spans(reliability)) == set()
    listed = {
        name
        for text in (reliability, advisories)
        for name in re.findall(r"^\| [^`|]*`(\w+)`\)? \|", text, re.MULTILINE)
    }
    assert listed == codes


def test_every_line_of_the_log_is_explained() -> None:
    events = {event for file, text in sources() if "structlog" in text for event in LOGGED.findall(text)}
    assert len(events) >= 7
    assert events - set(spans(GUIDE)) == set()


def test_every_kind_of_problem_is_in_use() -> None:
    names = {value.slug: name for name, value in vars(problem).items() if isinstance(value, problem.ProblemKind)}
    elsewhere = "".join(text for file, text in sources() if file.stem != "problem")
    assert {slug for slug, name in names.items() if not re.search(rf"\b{name}\b", elsewhere)} == set()


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
    named_alone = [span for span in spans(text) if re.fullmatch(r"/(?!var|opt|tmp|v1$)[\w{}./-]*", span)]
    paths = [*named, *((None, path) for path in (*called, *named_alone))]
    assert [one for one in paths if not is_served(*one)] == []


@pytest.mark.parametrize("document", WRITTEN)
def test_every_command_in_a_document_exists_with_its_options(document: str) -> None:
    text = WRITTEN[document]
    lines = [line for line in (*commands(text), *spans(text)) if re.search(r"(?:^|\()normalcy [a-z]", line)]
    for line in lines:
        called = line[line.index("normalcy ") :].rstrip(")")
        words = shlex.split(called)
        found = next((COMMANDS[" ".join(words[:n])] for n in (3, 2) if " ".join(words[:n]) in COMMANDS), None)
        assert found, called
        options = {option for parameter in found.params for option in parameter.opts} | {"--help"}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options, called


def test_scopes_in_examples_exist() -> None:
    given = set(re.findall(r"--scope (\S+)", ALL))
    assert given
    assert {scope.strip(")") for scope in given} <= set(Scope)


def test_metrics_that_the_guide_names_exist() -> None:
    named = set(re.findall(r"`(normalcy_\w+)`", GUIDE)) - LOGINS
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
