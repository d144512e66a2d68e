"""The whole benchmark in its order: data, choice, fits, measures, chapters, report."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from app.benchmark.paper.chapters import CHAPTERS, Chapter, chapter
from app.benchmark.paper.choice import choose
from app.benchmark.paper.data import Table, load
from app.benchmark.paper.kept import LoadedModels
from app.benchmark.paper.measured import EXPERIMENTS, Measured, measure, tasks_of
from app.benchmark.paper.plan import QUICK, Scope
from app.benchmark.paper.pool import Report, Runner
from app.benchmark.paper.sets import BY_NAME, SETS
from app.benchmark.paper.study import Study

ALL = (*EXPERIMENTS, *CHAPTERS)
QUICK_EXPERIMENTS = ("table2", "abstention", "sparsity")
QUICK_SETS = ("Yacht",)


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for, from the command line."""

    data: Path | None
    build: Path  # downloads and finished tasks
    quick: bool
    only: tuple[str, ...]  # empty: everything
    processes: int
    scheduler: str | None

    @property
    def scope(self) -> Scope:
        return QUICK if self.quick else Scope()

    @property
    def names(self) -> Collection[str]:
        return self.only or (QUICK_EXPERIMENTS if self.quick else ALL)


@dataclass(frozen=True, slots=True)
class Outcome:
    measured: Measured | None
    chapters: tuple[Chapter, ...]
    origins: tuple[dict[str, str], ...]


def run(order: Order, report: Report) -> Outcome:
    wanted = {name: name in order.names for name in EXPERIMENTS}
    measured, origins = _uci(order, wanted, report) if any(wanted.values()) else (None, [])
    told = [
        chapter(name, order.build / "chapters", lambda what: report(what, 1.0))
        for name in CHAPTERS
        if name in order.names
    ]
    stamps = {tuple(sorted(one.items())) for one in (*origins, *(one.origin for one in told))}
    return Outcome(measured, tuple(told), tuple(dict(pairs) for pairs in sorted(stamps)))


def _uci(order: Order, wanted: dict[str, bool], report: Report) -> tuple[Measured, list[dict[str, str]]]:
    tables = _tables(order)
    shelf = LoadedModels(order.build / "results")
    runner = Runner(tables, shelf, order.processes, order.scheduler)
    judged = choose(tables, order.scope, runner, report)
    tasks = tasks_of(wanted, tables, order.scope, judged.winner)
    results = runner.results(tasks, report, "fitting")
    study = Study(tables, order.scope, judged.winner, results)
    measured = measure(study, wanted, judged, lambda what: report(what, 1.0))
    return measured, shelf.origins([(task, tables[task.dataset].digest) for task in tasks])


def _tables(order: Order) -> dict[str, Table]:
    names = QUICK_SETS if order.quick else tuple(one.name for one in SETS)
    return {name: load(BY_NAME[name], order.data, order.build / "data") for name in names}
