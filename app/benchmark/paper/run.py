"""The whole benchmark in its order: data, choice, fits, measures, chapters."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from app.benchmark.paper import abstention, detection, sensitivity, sparsity
from app.benchmark.paper.abstention import Answered, WidthByScore
from app.benchmark.paper.choice import Judged, choose
from app.benchmark.paper.data import BY_NAME, SETS, Table, load
from app.benchmark.paper.detection import Row, Rows
from app.benchmark.paper.noise import Noise, linear_noise
from app.benchmark.paper.published import TABLE2
from app.benchmark.paper.runner import Report, ResultStore, Runner, code_digest, origin
from app.benchmark.paper.sensitivity import Change
from app.benchmark.paper.study import Spread, Study
from app.benchmark.paper.tasks import EXPERIMENTS, QUICK, Scope, crossed, tasks_of
from app.files import replace_file

# The chapters beside the UCI sets, in the order of the report. Module `name` has run() -> plain values; the second
# module, often the same, has render(values, folder of figures) -> Markdown and headline(values) -> a sentence.
CHAPTERS = {"clinical": "clinical_report", "density": "density", "growth": "growth", "variance_as_sd": "variance_as_sd"}
ALL = (*EXPERIMENTS, *CHAPTERS)
QUICK_EXPERIMENTS = ("table2", "abstention", "sparsity")
QUICK_SETS = ("Yacht",)


@dataclass(frozen=True, slots=True)
class Order:
    """What to run, from the command line."""

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
class Chapter:
    name: str
    origin: dict[str, str]
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds, which other work on the machine moves less than wall time."""

    fit: dict[str, float]  # set -> mean of an NS fit
    slowest: dict[str, float]
    table2: float  # all fits of Table 2
    table2_wall: float  # wall time of the same, one after the other
    second_attempts: int  # NS and NS_hom fits of which a part had to be done again


@dataclass(frozen=True, slots=True)
class Measured:
    """All that the report says of the UCI sets, as values. What was not run is None."""

    judged: Judged
    noise: dict[str, Noise] | None
    table2: Rows | None
    predictive: Row | None
    fresh: Rows | None
    abstention: dict[str, dict[str, Answered]] | None
    abstention_fresh: dict[str, dict[str, Answered]] | None
    abstention_hom: dict[str, dict[str, Answered]] | None  # of NS_hom, whose f2 is a number
    width_by_score: dict[str, WidthByScore] | None
    kendall: dict[str, dict[str, dict[str, Spread]]] | None
    kernels: dict[str, dict[str, Change]] | None
    shares: dict[float, dict[str, Change]] | None
    cost: Cost | None


@dataclass(frozen=True, slots=True)
class Outcome:
    measured: Measured | None
    chapters: tuple[Chapter, ...]
    origins: tuple[dict[str, str], ...]


def run(order: Order, report: Report) -> Outcome:
    wanted = {name: name in order.names for name in EXPERIMENTS}
    measured, origins = _uci(order, wanted, report) if any(wanted.values()) else (None, [])
    others = [
        chapter(name, order.build / "chapters", lambda what: report(what, 1.0))
        for name in CHAPTERS
        if name in order.names
    ]
    origins_of_all = {tuple(sorted(one.items())) for one in (*origins, *(one.origin for one in others))}
    return Outcome(measured, tuple(others), tuple(dict(pairs) for pairs in sorted(origins_of_all)))


def _uci(order: Order, wanted: dict[str, bool], report: Report) -> tuple[Measured, list[dict[str, str]]]:
    tables = _tables(order)
    store = ResultStore(order.build / "results")
    runner = Runner(tables, store, order.processes, order.scheduler)
    judged = choose(tables, order.scope, runner, report)
    tasks = tasks_of(wanted, tables, order.scope, judged.winner)
    results = runner.results(tasks, report, "fitting")
    study = Study(tables, order.scope, judged.winner, results)
    measured = measure(study, wanted, judged, lambda what: report(what, 1.0))
    return measured, store.origins([(task, tables[task.dataset].digest) for task in tasks])


def _tables(order: Order) -> dict[str, Table]:
    names = QUICK_SETS if order.quick else tuple(one.name for one in SETS)
    return {name: load(BY_NAME[name], order.data, order.build / "data") for name in names}


def measure(study: Study, names: Mapping[str, bool], judged: Judged, report: Callable[[str], None]) -> Measured:
    def if_wanted(name: str, make: Callable[[Study], object]) -> object:
        if not names[name]:
            return None
        report(f"measuring: {name}")
        return make(study)

    made = {
        "noise": if_wanted("noise", _noise),
        "table2": if_wanted("table2", detection.table2),
        "predictive": if_wanted("table2", detection.predictive_row),
        "fresh": if_wanted("fresh", detection.fresh),
        "abstention": if_wanted("abstention", lambda one: abstention.abstention(one, one.scope.seeds)),
        "abstention_fresh": if_wanted("fresh", lambda one: abstention.abstention(one, one.scope.fresh)),
        "abstention_hom": if_wanted("abstention", lambda one: _hom(one) if names["table2"] else None),
        "width_by_score": if_wanted("abstention", abstention.width_by_score),
        "kendall": if_wanted("sparsity", sparsity.kendall),
        "kernels": if_wanted("kernels", sensitivity.kernels),
        "shares": if_wanted("shares", sensitivity.shares),
        "cost": if_wanted("table2", _cost),
    }
    return Measured(judged, **made)  # type: ignore[arg-type]


def _hom(study: Study) -> dict[str, dict[str, Answered]] | None:
    has_hom = "NS_hom" in study.scope.methods
    return abstention.abstention(study, study.scope.seeds, "NS_hom") if has_hom else None


def _noise(study: Study) -> dict[str, Noise]:
    rows = TABLE2["Z-score"]
    return {name: linear_noise(one, (rows[name][0][0], rows[name][1][0])) for name, one in study.tables.items()}


def _cost(study: Study) -> Cost:
    wanted = {name: crossed(table, "NS", study.choice, study.scope.seeds) for name, table in study.tables.items()}
    seconds = {name: [study.results[task].cpu_seconds for task in tasks] for name, tasks in wanted.items()}
    everything = [
        study.results[task]
        for method in study.scope.methods
        for table in study.tables.values()
        for task in crossed(table, method, study.choice, study.scope.seeds)
    ]
    return Cost(
        {name: sum(values) / len(values) for name, values in seconds.items()},
        {name: max(values) for name, values in seconds.items()},
        sum(result.cpu_seconds for result in everything),
        sum(result.wall_seconds for result in everything),
        sum(bool(result.notes) for result in everything),
    )


def chapter(name: str, folder: Path, report: Callable[[str], None]) -> Chapter:
    """From the store, or run and stored: while its code stays the same it is not run again."""
    module = f"app.benchmark.paper.{name}"
    path = folder / f"{name}-{code_digest(module)[:16]}.json"
    if not path.is_file():
        report(f"running: {name}")
        made = Chapter(name, origin(), import_module(module).run())
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(made))
    return msgspec.json.decode(path.read_bytes(), type=Chapter)


def headline(one: Chapter) -> str:
    """A sentence for the top of the report."""
    say: Callable[[dict[str, Any]], str] = _text_module(one).headline
    return say(one.result)


def rendered(one: Chapter, figures: Path) -> str:
    render: Callable[[dict[str, Any], Path], str] = _text_module(one).render
    return render(one.result, figures)


def _text_module(one: Chapter) -> Any:
    return import_module(f"app.benchmark.paper.{CHAPTERS[one.name]}")
