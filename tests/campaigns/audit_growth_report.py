"""The findings on the growth of the audit as a document."""

from collections.abc import Sequence
from statistics import median
from typing import Protocol

from app.benchmark.stamp import stamp

MOST_SECONDS = 0.2  # for the ends of 10,000 chains among 600,000 records
EXPLAINED = """\
Once a minute a service writes down where every chain of the audit ends. *Ends* is the query alone, with its rows read;
*checkpoint* is all of it: the query, the root over all ends, and the file, synchronised to the disk. Both run as in a
service, with its deadline of 2 s for a statement. Records are real scores. Medians, in brackets the fastest and the
slowest turn. The processor's time is that of the service's process, without PostgreSQL's own: on a machine with more
work than processors the difference to the clock is waiting."""


class Grown(Protocol):
    @property
    def database(self) -> str: ...
    @property
    def chains(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def heads_seconds(self) -> Sequence[float]: ...
    @property
    def heads_processor_seconds(self) -> Sequence[float]: ...
    @property
    def checkpoint_seconds(self) -> Sequence[float]: ...


def render(found: Sequence[Grown], load_average: tuple[float, float], command: str) -> str:
    largest = max(one.records for one in found)
    slowest = max(median(one.heads_seconds) for one in found if one.records == largest)
    verdict = "Reached" if slowest <= MOST_SECONDS else "Not reached"
    lines = [
        "# What a checkpoint costs as the audit grows",
        "",
        *stamp(command),
        "Load average of the machine before and after: {:.1f} and {:.1f}.".format(*load_average),
        "",
        EXPLAINED,
        "",
        "| database | chains | records | ends, s | of it processor, s | checkpoint, s |",
        "|---|---|---|---|---|---|",
        *(
            f"| {one.database} | {one.chains:,} | {one.records:,} | {_told(one.heads_seconds)} "
            f"| {median(one.heads_processor_seconds):.3f} | {_told(one.checkpoint_seconds)} |"
            for one in found
        ),
        "",
        f"Aim: the ends of the largest audit within {MOST_SECONDS} s on both databases. {verdict}: {slowest:.3f} s.",
    ]
    return "\n".join(lines) + "\n"


def _told(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f})"
