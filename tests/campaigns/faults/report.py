"""The results of the campaign as a document: docs/faults.md, and docs/faults.json for programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from app.benchmark.report_header import report_header
from app.formats.markdown import table
from tests.campaigns.faults.broken_builds import shown_command
from tests.campaigns.faults.found import FOUND
from tests.campaigns.faults.mutants import MUTANTS
from tests.campaigns.faults.results import REPORTED, Result
from tests.campaigns.faults.row import Row
from tests.campaigns.faults.rows import ROWS
from tests.campaigns.reports import wrapped, write_report

Results = Mapping[tuple[str, str], Result]
BROKEN = "F18"
COMMAND = "python -m tests.campaigns.faults"
INTRODUCTION = (
    f"The real service, `normalcy serve` with the shipped models, under faults. Each row is a command of its own: "
    f"`{COMMAND} --only ROW` runs it on every database that it applies to, with the full number of cycles and the seed "
    "2026; `--cycles`, `--seed` and `--database` change that. `make faults` runs every row that has no result in "
    f"`build/faults` yet (hours in all), then writes this page with `{COMMAND} --render`. The same results for "
    f"programs: `docs/{REPORTED}`. A row that was not run again keeps its earlier result: the last column names the "
    "commit. `python` is that of `.venv/dev`, which `make check` installs. F4-full-disk needs the right to mount "
    "(root), F5 `strace`, F10 two processors and `taskset`, and F16 the history of the repository."
)

LOAD = (
    "*Load of the machine* is the average over the last minute of processes that wanted a processor, when the row "
    "ended; the campaign's own are among them. Times of a row with a load far above the number of cores say little."
)


def render(results: Results, docs: Path) -> None:
    write_report(docs / "faults.md", report(results, report_header(f"{COMMAND} --render")))
    content = msgspec.json.format(msgspec.json.encode([results[key] for key in sorted(results)]))
    (docs / REPORTED).write_bytes(content + b"\n")


def report(results: Results, header: Sequence[str], rows: Sequence[Row] = ROWS) -> list[str]:
    """Lines of Markdown."""
    return [
        "# Faults under load",
        "",
        *header,
        "",
        *wrapped(INTRODUCTION),
        "",
        *wrapped(LOAD + _machines(results)),
        "",
        *_summary(results, rows),
        *(line for row in rows if row.number != BROKEN for line in _section(row, results)),
        *_broken_builds(results),
        "## Every fault found so far",
        "",
        "With the command that looks for it again, and the commit that fixed it, if it is fixed.",
        "",
        *table(("fault", "fixed in", "command"), ((one.fault, one.fixed, f"`{one.replay}`") for one in FOUND)),
    ]


def _machines(results: Results) -> str:
    """Where results come from, if not all from the same kind."""
    machines = sorted({each.machine for each in results.values()})
    if len(machines) < 2:
        return ""
    return f" The rows ran on different machines ({'; '.join(machines)}): `docs/{REPORTED}` names that of each."


def _summary(results: Results, rows: Sequence[Row]) -> list[str]:
    head = ("row", "database", "run", "asked for", "seed", "held")
    return table(
        head,
        (_summary_cells(row, database, results) for row in rows if row.number != BROKEN for database in row.databases),
    )


def _summary_cells(row: Row, database: str, results: Results) -> list[str]:
    asked = f"{row.cycles:,} {row.unit}"
    found = results.get((row.slug, database))
    if found is None:
        return [row.slug, database, "not yet", asked, "–", "–"]
    unmet = "; ".join(found.unmet + found.late).replace("|", "\\|")  # an error may contain anything
    verdict = "yes" if found.held else f"**no**: {unmet}"
    if found.held and found.cycles < row.cycles:
        verdict = "yes, in fewer than asked for"
    return [row.slug, database, f"{found.cycles:,}", asked, str(found.seed), verdict]


def _section(row: Row, results: Results) -> list[str]:
    found = [results[row.slug, database] for database in row.databases if (row.slug, database) in results]
    lines = [
        f"## {row.number}: {row.name}",
        "",
        *wrapped(row.procedure),
        "",
        *wrapped(f"Required: {row.required}."),
        "",
    ]
    lines += [f"`{COMMAND} --only {row.slug}`", ""]
    if not found:
        return [*lines, "Not run yet.", ""]
    names = list(dict.fromkeys(name for one in found for name in one.figures))
    head = ("database", row.unit, *names, "load of the machine", "commit")
    return [*lines, *table(head, (_cells(one, names) for one in found), numeric_from=1)]


def _broken_builds(results: Results) -> list[str]:
    slugs = {row.name: row.slug for row in ROWS if row.number == BROKEN}
    cells = []
    for name, mutant in MUTANTS.items():
        found = results.get((slugs[name.replace("_", " ")], "both"))
        seen, commit = (str(found.figures["seen"]), found.commit) if found else ("not run yet", "–")
        cells.append((mutant.broken, f"`{shown_command(name, mutant)}`", seen, commit))
    introduction = (
        "The service with one promise broken (`tests/campaigns/faults/mutants.py`), by the row or the test that must "
        f"notice it. `{COMMAND} --only {BROKEN}` runs them all; a build is caught if the command fails and prints the "
        "sign of this very defect."
    )
    head = ("what is broken", "command that must fail", "seen", "commit")
    return [f"## {BROKEN}: broken builds", "", *wrapped(introduction), "", *table(head, cells)]


def _cells(found: Result, names: Sequence[str]) -> list[str]:
    values = (found.figures.get(name, "–") for name in names)
    figures = (value if isinstance(value, str) else f"{value:,}" for value in values)
    return [found.database, f"{found.cycles:,}", *figures, f"{found.load:.1f}", found.commit]
