"""This source tree against another commit of it, in one run: throughput, processor time, and the audit's commits apart.

Four servers run at once, both trees on both databases; those without load are idle. The two of a database are measured
one right after the other, in alternating order, and every ratio is within such a pair.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from app.formats.markdown import table
from tests.campaigns.http_load_report import BUSY
from tests.campaigns.reports import opening, spread
from tests.campaigns.servers import OUR_TREE, CommitTime, Load, Running, migrated, run_load
from tests.campaigns.trees import head_commit, service_of_tree, worktree
from tests.postgres import PostgresServer, postgres_server

DATABASES = ("SQLite", "PostgreSQL")
WARM_UP_SECONDS = 2.0  # of each number of connections
EXPLANATION = """\
Both source trees are served by `normalcy serve` in the same environment, each with its own models, on the same
processor; the load comes from another process on another one, each pinned. Every answer was a 200, on record and
synchronised to the disk before it was sent. A *pair* is one measurement of each tree on the same database, one right
after the other; a ratio above 100% in answers a second, or below 100% in times, is in favour of this tree."""
APART = """\
Times from `/metrics`, before and after each measurement. *Outside commits* is the time from one answer to the next
that no commit covers: with one connection, what an answer takes beside its commit; with many, what the processor still
does while no commit is in flight."""


@dataclass(frozen=True, slots=True)
class Side:
    """One tree in one pair."""

    load: Load
    commits: CommitTime  # during the load
    seconds: float  # of the load

    @property
    def answers(self) -> float:
        return self.load.rate * self.seconds

    @property
    def commit_ms(self) -> float:
        """The mean commit."""
        return self.commits.seconds / self.commits.commits * 1e3

    @property
    def answers_per_commit(self) -> float:
        return self.answers / self.commits.commits

    @property
    def outside_commits_us(self) -> float:
        """Per answer."""
        return (self.seconds - self.commits.seconds) / self.answers * 1e6


@dataclass(frozen=True, slots=True)
class Pair:
    database: str
    connections: int
    ours: Side
    theirs: Side


@dataclass(frozen=True, slots=True)
class Comparison:
    revision: str
    pairs: Sequence[Pair]
    seconds: float
    load_average: tuple[float, float]

    def groups(self) -> Iterator[tuple[str, list[Pair]]]:
        """The pairs of each database and number of connections, with a name."""
        for database in DATABASES:
            for count in sorted({pair.connections for pair in self.pairs}):
                found = [p for p in self.pairs if (p.database, p.connections) == (database, count)]
                yield f"{database}, {count} connection{'s' * (count > 1)}", found


def measure(revision: str, rounds: int, seconds: float, connections: Sequence[int]) -> Comparison:
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, worktree(revision, Path(name) / "tree") as tree:
        with postgres_server() as postgres, both_trees(Path(name), tree, postgres) as servers:
            for server in servers.values():
                for count in connections:
                    run_load(server, count, min(WARM_UP_SECONDS, seconds))
            pairs = [
                _pair(database, count, servers, number, seconds)
                for number in range(rounds)
                for count in connections
                for database in DATABASES
            ]
        commit = head_commit(tree)
    return Comparison(commit, pairs, seconds, (before, os.getloadavg()[0]))


def _pair(
    database: str, connections: int, servers: dict[tuple[str, bool], Running], number: int, seconds: float
) -> Pair:
    order = (True, False) if number % 2 == 0 else (False, True)
    sides = {is_ours: _side(servers[database, is_ours], connections, seconds) for is_ours in order}
    ratio = sides[True].load.rate / sides[False].load.rate
    sys.stderr.write(f"round {number + 1}, {database}, {connections}: {ratio:.2f}\n")
    return Pair(database, connections, sides[True], sides[False])


def _side(server: Running, connections: int, seconds: float) -> Side:
    before = server.commit_time
    load = run_load(server, connections, seconds)
    return Side(load, server.commit_time - before, seconds)


@contextmanager
def both_trees(folder: Path, other: Path, postgres: PostgresServer) -> Iterator[dict[tuple[str, bool], Running]]:
    """Four servers, by database and whether they run our tree."""
    with ExitStack() as stack:
        found = {}
        for is_ours, tree in ((True, OUR_TREE), (False, other)):
            for database in DATABASES:
                url = stack.enter_context(migrated(postgres, tree)) if database == "PostgreSQL" else ""
                data = folder / f"{database}-{'ours' if is_ours else 'theirs'}"
                found[database, is_ours] = stack.enter_context(service_of_tree(tree, data, url))
        yield found


def render(comparison: Comparison, command: str) -> list[str]:
    return [
        *opening(f"This tree against commit {comparison.revision}", command, comparison.load_average, BUSY),
        EXPLANATION,
        "",
        *_summary_lines(comparison),
        *_commit_lines(comparison),
        *_pair_lines(comparison),
    ]


def _summary_lines(comparison: Comparison) -> list[str]:
    def row(name: str, pairs: Sequence[Pair]) -> list[str]:
        rates = [(p.ours.load.rate, p.theirs.load.rate) for p in pairs]
        costs = [(p.ours.load.cost, p.theirs.load.cost) for p in pairs]
        return [name, *_compared(rates), *_compared(costs)]

    head = [
        "",
        "answers/s before",
        "now",
        "ratio in a pair",
        "processor µs per answer before",
        "now",
        "ratio in a pair",
    ]
    return [
        "## Median, and ratios: median (lowest to highest)",
        "",
        *table(head, [row(name, pairs) for name, pairs in comparison.groups()]),
    ]


def _commit_lines(comparison: Comparison) -> list[str]:
    def row(name: str, pairs: Sequence[Pair]) -> list[str]:
        times = [(p.ours.commit_ms, p.theirs.commit_ms) for p in pairs]
        sizes = [(p.ours.answers_per_commit, p.theirs.answers_per_commit) for p in pairs]
        rest = [(p.ours.outside_commits_us, p.theirs.outside_commits_us) for p in pairs]
        return [name, *_compared(times, ".2f")[:2], *_compared(sizes, ".1f")[:2], *_compared(rest)]

    head = [
        "", "ms per commit before", "now", "answers per commit before", "now",
        "µs outside commits per answer before", "now", "ratio in a pair",
    ]  # fmt: skip
    return [
        "## The audit's commits apart",
        "",
        APART,
        "",
        *table(head, [row(name, pairs) for name, pairs in comparison.groups()]),
    ]


def _compared(values: Sequence[tuple[float, float]], pattern: str = ",.0f") -> list[str]:
    """Before, now, and now in units of before."""
    ours, theirs = (median(side) for side in zip(*values, strict=True))
    ratios = [our / their for our, their in values]
    return [format(theirs, pattern), format(ours, pattern), spread(ratios, ".0%")]


def _pair_lines(comparison: Comparison) -> list[str]:
    rows = (
        [p.database, str(p.connections), f"{p.theirs.load.rate:,.0f}", f"{p.ours.load.rate:,.0f}"]
        for _, pairs in comparison.groups()
        for p in pairs
    )
    title = f"## All pairs, answers a second, {comparison.seconds:g} s each"
    return [title, "", *table(("database", "connections", "before", "now"), rows)]
