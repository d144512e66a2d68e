"""All that a report says of the UCI sets, as values: made from results, rendered by `report`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.benchmark.paper import abstention, detection, plan, sensitivity, sparsity
from app.benchmark.paper.abstention import Kept, WidthByScore
from app.benchmark.paper.choice import Judged
from app.benchmark.paper.data import Table
from app.benchmark.paper.detection import Rowwise
from app.benchmark.paper.noise import Noise, linear_noise
from app.benchmark.paper.published import TABLE2
from app.benchmark.paper.recipes import Choice
from app.benchmark.paper.sensitivity import Change
from app.benchmark.paper.study import Spread, Study
from app.benchmark.paper.work import Task

EXPERIMENTS = ("noise", "table2", "fresh", "abstention", "sparsity", "kernels", "shares")


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds, which other work on the machine moves less than the time on the wall."""

    fit: dict[str, float]  # set -> mean of an NS fit
    slowest: dict[str, float]
    table2: float  # all fits of Table 2
    table2_wall: float  # the same on the wall, one after the other
    second_attempts: int  # NS and NS_hom fits of which a part had to be done again


@dataclass(frozen=True, slots=True)
class Measured:
    """What was not asked for is None."""

    judged: Judged
    noise: dict[str, Noise] | None
    table2: dict[str, Rowwise] | None
    predictive: Rowwise | None
    fresh: dict[str, Rowwise] | None
    abstention: dict[str, dict[str, Kept]] | None
    abstention_fresh: dict[str, dict[str, Kept]] | None
    abstention_hom: dict[str, dict[str, Kept]] | None  # of NS_hom, whose f2 is a number
    width_by_score: dict[str, WidthByScore] | None
    kendall: dict[str, dict[str, dict[str, Spread]]] | None
    kernels: dict[str, dict[str, Change]] | None
    shares: dict[float, dict[str, Change]] | None
    cost: Cost | None


def tasks_of(names: Mapping[str, bool], tables: Mapping[str, Table], scope: plan.Scope, choice: Choice) -> list[Task]:
    """Everything that the named experiments need: detection first, then kernels and shares, in each the cheap first."""
    needs_ns = names["table2"] or names["abstention"] or names["sparsity"]
    methods = scope.methods if names["table2"] else (("NS",) if needs_ns else ())
    found = [
        task
        for asked, seeds in ((methods, scope.seeds), (scope.methods if names["fresh"] else (), scope.fresh))
        for method in asked
        for one in tables.values()
        for task in plan.crossed(one, method, choice, seeds)
    ]
    return list(dict.fromkeys([*_cheap_first(found), *_cheap_first(_sensitivity(names, tables, choice))]))


def _sensitivity(names: Mapping[str, bool], tables: Mapping[str, Table], choice: Choice) -> list[Task]:
    sets, tasks = tables.values(), list[Task]()
    if names["kernels"] or names["shares"]:
        tasks += [task for one in sets for task in plan.crossed(one, "NS", choice, (plan.SENSITIVITY_SEED,))]
    if names["kernels"]:
        tasks += [task for kind in plan.KERNELS for one in sets for task in plan.kernel_tasks(one, choice, kind)]
    if names["shares"]:
        tasks += [task for share in plan.SHARES for one in sets for task in plan.share_tasks(one, choice, share)]
    return tasks


def _cheap_first(tasks: list[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: task.dataset in plan.LARGE)


def measure(study: Study, names: Mapping[str, bool], judged: Judged, report: Callable[[str], None]) -> Measured:
    def asked(name: str, make: Callable[[Study], object]) -> object:
        if not names[name]:
            return None
        report(f"measuring: {name}")
        return make(study)

    made = {
        "noise": asked("noise", _noise),
        "table2": asked("table2", detection.table2),
        "predictive": asked("table2", detection.predictive_row),
        "fresh": asked("fresh", detection.fresh),
        "abstention": asked("abstention", lambda one: abstention.abstention(one, one.scope.seeds)),
        "abstention_fresh": asked("fresh", lambda one: abstention.abstention(one, one.scope.fresh)),
        "abstention_hom": asked("abstention", lambda one: _hom(one) if names["table2"] else None),
        "width_by_score": asked("abstention", abstention.width_by_score),
        "kendall": asked("sparsity", sparsity.kendall),
        "kernels": asked("kernels", sensitivity.kernels),
        "shares": asked("shares", sensitivity.shares),
        "cost": asked("table2", _cost),
    }
    return Measured(judged, **made)  # type: ignore[arg-type]


def _hom(study: Study) -> dict[str, dict[str, Kept]] | None:
    has_hom = "NS_hom" in study.scope.methods
    return abstention.abstention(study, study.scope.seeds, "NS_hom") if has_hom else None


def _noise(study: Study) -> dict[str, Noise]:
    rows = TABLE2["Z-score"]
    return {name: linear_noise(one, (rows[name][0][0], rows[name][1][0])) for name, one in study.tables.items()}


def _cost(study: Study) -> Cost:
    wanted = {name: plan.crossed(table, "NS", study.choice, study.scope.seeds) for name, table in study.tables.items()}
    seconds = {name: [study.results[task].cpu_seconds for task in tasks] for name, tasks in wanted.items()}
    everything = [
        study.results[task]
        for method in study.scope.methods
        for table in study.tables.values()
        for task in plan.crossed(table, method, study.choice, study.scope.seeds)
    ]
    return Cost(
        {name: sum(values) / len(values) for name, values in seconds.items()},
        {name: max(values) for name, values in seconds.items()},
        sum(result.cpu_seconds for result in everything),
        sum(result.wall_seconds for result in everything),
        sum(bool(result.notes) for result in everything),
    )
