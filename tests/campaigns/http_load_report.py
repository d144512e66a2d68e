"""The campaign's findings as a document: medians of ratios first, then every round as it was."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Protocol

from app.benchmark.stamp import stamp

SERVERS = ("hello", "FastAPI route", "audit off", "SQLite", "PostgreSQL")
RATIOS = (
    ("SQLite", "FastAPI route"),
    ("PostgreSQL", "FastAPI route"),
    ("SQLite", "audit off"),
    ("PostgreSQL", "audit off"),
    ("audit off", "FastAPI route"),
    ("FastAPI route", "hello"),
)
EXPLAINED = """\
- *hello*: uvicorn with an application that answers five bytes.
- *FastAPI route*: an `async def` route. pydantic reads the same request; a constant answer of full size is checked and
  written through its response model. It computes nothing and records nothing.
- *audit off*: this service with a writer that does nothing. There is no setting for that; only this measurement has it.
- *SQLite*, *PostgreSQL*: this service with everything on. Every answer is on record, synchronised to the disk,
  before it leaves.

Each is one process with uvloop and httptools on the same processor; the load comes from another process on another
one, each pinned. Every answer was a 200."""
QUIET = 1.0  # load average before the campaign adds its own; it remembers what ended a minute ago
DISTURBED = """\
**The machine was busy with other work**, with which the servers had to share their processor. Neither the ratios nor
the times below can be relied on: measure again on a quiet machine."""


class Rates(Protocol):
    @property
    def connections(self) -> int: ...
    @property
    def rates(self) -> Mapping[str, float]: ...
    @property
    def costs(self) -> Mapping[str, float]: ...


class Found(Protocol):
    @property
    def rounds(self) -> Sequence[Rates]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def start_seconds(self) -> Mapping[str, Sequence[float]]: ...
    @property
    def resident_mb(self) -> Mapping[str, float]: ...
    @property
    def load_average(self) -> tuple[float, float]: ...


def render(found: Found, command: str) -> str:
    before, after = found.load_average
    lines = [
        "# Answers a second over HTTP",
        "",
        *stamp(command),
        f"Load average of the machine before and after: {before:.1f} and {after:.1f}.",
        "",
        *([DISTURBED, ""] if before > QUIET else []),
        EXPLAINED,
        "",
        *_ratio_lines(found.rounds),
        "",
        *_cost_lines(found.rounds),
        "",
        *_process_lines(found),
        "",
        *_round_lines(found),
    ]
    return "\n".join(lines) + "\n"


def _ratio_lines(rounds: Sequence[Rates]) -> list[str]:
    counts = sorted({each.connections for each in rounds})
    heads = " | ".join(f"{count} connection{'s' * (count > 1)}" for count in counts)
    lines = [
        "## Ratios within a round: median (lowest to highest)",
        "",
        f"| | {heads} |",
        "|---|" + "---|" * len(counts),
    ]
    for name, other in RATIOS:
        cells = " | ".join(_ratio([r for r in rounds if r.connections == count], name, other) for count in counts)
        lines.append(f"| {name} / {other} | {cells} |")
    return lines


def _ratio(rounds: Sequence[Rates], name: str, other: str) -> str:
    ratios = [each.rates[name] / each.rates[other] for each in rounds]
    return f"{median(ratios):.0%} ({min(ratios):.0%} to {max(ratios):.0%})"


def _cost_lines(rounds: Sequence[Rates]) -> list[str]:
    """What a crowded machine disturbs less than it disturbs the rates."""
    counts = sorted({each.connections for each in rounds})
    lines = [
        "## Processor time of the server for an answer, µs: medians",
        "",
        "All threads of the server's process; PostgreSQL's own processes are not in it.",
        "",
        f"| connections | {' | '.join(SERVERS)} |",
        "|---|" + "---|" * len(SERVERS),
    ]
    for count in counts:
        alike = [each for each in rounds if each.connections == count]
        cells = " | ".join(f"{median(each.costs[name] for each in alike):,.0f}" for name in SERVERS)
        lines.append(f"| {count} | {cells} |")
    return lines


def _process_lines(found: Found) -> list[str]:
    lines = ["## The process", "", "| | start to first answer, s | resident after the load, MB |", "|---|---|---|"]
    for name, starts in found.start_seconds.items():
        told = f"{median(starts):.2f} ({', '.join(f'{each:.2f}' for each in starts)})"
        lines.append(f"| {name} | {told} | {found.resident_mb[name]:.0f} |")
    return lines


def _round_lines(found: Found) -> list[str]:
    lines = [f"## All rounds, answers a second, {found.seconds:g} s each", ""]
    lines += [f"| connections | {' | '.join(SERVERS)} |", "|---|" + "---|" * len(SERVERS)]
    for each in sorted(found.rounds, key=lambda one: one.connections):
        lines.append(f"| {each.connections} | {' | '.join(f'{each.rates[name]:,.0f}' for name in SERVERS)} |")
    return lines
