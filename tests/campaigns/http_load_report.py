"""The results of the load campaign as a document: medians of ratios first, then all rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from app.formats.markdown import table
from tests.campaigns.reports import opening, spread
from tests.campaigns.servers import Load

SERVERS = ("hello", "FastAPI route", "audit off", "SQLite", "PostgreSQL")
RATIOS = (
    ("SQLite", "FastAPI route"),
    ("PostgreSQL", "FastAPI route"),
    ("SQLite", "audit off"),
    ("PostgreSQL", "audit off"),
    ("audit off", "FastAPI route"),
    ("FastAPI route", "hello"),
)
EXPLANATION = """\
- *hello*: uvicorn with an application that answers five bytes.
- *FastAPI route*: an `async def` route. pydantic reads the same request; a constant answer of full size is checked and
  written through its response model. It computes nothing and records nothing.
- *audit off*: this service with a writer that does nothing. There is no setting for that; only this measurement has it.
- *SQLite*, *PostgreSQL*: this service with everything on. Every answer is on record, synchronised to the disk,
  before it is sent.

Each is one process with uvloop and httptools on the same processor; the load comes from another process on another
one, each pinned. Every answer was a 200."""
BUSY = """\
**The machine was busy with other work**, which shared the servers' processor. Neither the ratios nor the times below
are reliable: measure again on a quiet machine."""


@dataclass(frozen=True, slots=True)
class Round:
    connections: int
    loads: Mapping[str, Load]  # by server


@dataclass(frozen=True, slots=True)
class Results:
    rounds: Sequence[Round]
    seconds: float  # of each measurement
    start_seconds: Mapping[str, Sequence[float]]  # to the first answer, by database
    resident_mb: Mapping[str, float]  # after the load, by database
    load_average: tuple[float, float]  # of the machine before and after, one minute

    @property
    def connections(self) -> list[int]:
        return sorted({each.connections for each in self.rounds})

    def rounds_of(self, connections: int) -> list[Round]:
        return [each for each in self.rounds if each.connections == connections]


def render(results: Results, command: str) -> list[str]:
    return [
        *opening("Answers a second over HTTP", command, results.load_average, BUSY),
        EXPLANATION,
        "",
        *_ratio_lines(results),
        *_cost_lines(results),
        *_process_lines(results),
        *_round_lines(results),
    ]


def _ratio_lines(results: Results) -> list[str]:
    counts = results.connections
    head = ["", *(f"{count} connection{'s' * (count > 1)}" for count in counts)]
    rows = (
        [f"{name} / {other}", *(_ratio(results.rounds_of(count), name, other) for count in counts)]
        for name, other in RATIOS
    )
    return ["## Ratios within a round: median (lowest to highest)", "", *table(head, rows)]


def _ratio(rounds: Sequence[Round], name: str, other: str) -> str:
    return spread([each.loads[name].rate / each.loads[other].rate for each in rounds], ".0%")


def _cost_lines(results: Results) -> list[str]:
    """Other work on the machine disturbs processor times less than rates."""

    def row(count: int) -> list[str]:
        rounds = results.rounds_of(count)
        return [str(count), *(f"{median(each.loads[name].cost for each in rounds):,.0f}" for name in SERVERS)]

    return [
        "## Processor time of the server for an answer, µs: medians",
        "",
        "All threads of the server's process; PostgreSQL's own processes are not included.",
        "",
        *table(["connections", *SERVERS], map(row, results.connections)),
    ]


def _process_lines(results: Results) -> list[str]:
    rows = (
        (name, f"{median(starts):.2f} ({', '.join(f'{s:.2f}' for s in starts)})", f"{results.resident_mb[name]:.0f}")
        for name, starts in results.start_seconds.items()
    )
    return ["## The process", "", *table(("", "start to first answer, s", "resident after the load, MB"), rows)]


def _round_lines(results: Results) -> list[str]:
    rounds = sorted(results.rounds, key=lambda each: each.connections)
    rows = ([str(each.connections), *(f"{each.loads[name].rate:,.0f}" for name in SERVERS)] for each in rounds)
    title = f"## All rounds, answers a second, {results.seconds:g} s each"
    return [title, "", *table(["connections", *SERVERS], rows)]
