"""Which tasks each experiment consists of. Nothing here fits anything."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.benchmark.paper.data import BY_NAME, Table
from app.benchmark.paper.protocol import FITTED, FOLDS, FRESH_SEEDS, INNER_FOLDS, METHODS, SEEDS, Task, folds
from app.benchmark.paper.recipes import CANDIDATES, Choice, effective

EXPERIMENTS = ("noise", "table2", "fresh", "abstention", "sparsity", "kernels", "shares")
KERNELS = ("matern52", "rbf")  # beside the rational quadratic
SHARES = (0.1, 0.2)  # of inducing points, beside 5%
OUTER_FOLDS_OF_THE_CHOICE = (0, 1)
ROWS_OF_THE_CHOICE = 1200  # a training part is cut to so many rows at random: only Abalone has more
SENSITIVITY_SEED = SEEDS[0]
# One fold of one injection for kernels and shares, no 20% of inducing points.
LARGE = ("Abalone",)


@dataclass(frozen=True, slots=True)
class Scope:
    """The whole paper, or a part of it that a continuous integration can wait for."""

    seeds: tuple[int, ...] = SEEDS
    fresh: tuple[int, ...] = FRESH_SEEDS
    candidates: tuple[Choice, ...] = CANDIDATES
    methods: tuple[str, ...] = tuple(METHODS)
    sensitivity: bool = True
    outer: tuple[int, ...] = OUTER_FOLDS_OF_THE_CHOICE


QUICK = Scope(
    seeds=SEEDS[:1],
    fresh=(),
    candidates=(Choice("reg1"), Choice("reg1t6")),
    methods=("NS", "Z-score", "Altman", "QCAD", "ROCOD", "IForest", "LOF", "HBOS"),
    sensitivity=False,
    outer=(0,),
)


def choosing(table: Table, scope: Scope, candidate: Choice) -> list[Task]:
    """The inner folds that judge one candidate on one set."""
    seed = SEEDS[0]
    parts = [training for training, _ in folds(len(table.y), seed)]
    return [
        Task(
            table.name,
            BY_NAME[table.name].anomalies,
            seed,
            fold,
            "NS",
            effective(candidate, table.X[parts[fold]]),
            inner,
            ROWS_OF_THE_CHOICE,
        )
        for fold in scope.outer
        for inner in range(INNER_FOLDS)
    ]


def crossed(table: Table, method: str, choice: Choice, seeds: Sequence[int], count: int = FOLDS) -> list[Task]:
    """A method on the first `count` folds of every injection."""
    return list(_crossed(table, method, choice, seeds, count))


def _crossed(table: Table, method: str, choice: Choice, seeds: Sequence[int], count: int) -> Iterator[Task]:
    for seed in seeds:
        parts = [training for training, _ in folds(len(table.y), seed)]
        for fold in range(count):
            chosen = effective(choice_of(method, choice), table.X[parts[fold]]) if method in FITTED else None
            yield Task(table.name, BY_NAME[table.name].anomalies, seed, fold, method, chosen)


def choice_of(method: str, choice: Choice) -> Choice:
    """NS_hom is the same recipe with one spread for every context."""
    return replace(choice, heteroscedastic=False) if method == "NS_hom" else choice


def kernel_tasks(table: Table, choice: Choice, kernel: str) -> list[Task]:
    return crossed(table, "NS", replace(choice, kernel=kernel), (SENSITIVITY_SEED,), folds_for_sensitivity(table.name))


def share_tasks(table: Table, choice: Choice, share: float) -> list[Task]:
    """Empty where it would take longer than all the rest."""
    if table.name in LARGE and share > SHARES[0]:
        return []
    varied = replace(choice, inducing_share=share)
    return crossed(table, "NS", varied, (SENSITIVITY_SEED,), folds_for_sensitivity(table.name))


def folds_for_sensitivity(dataset: str) -> int:
    return 1 if dataset in LARGE else FOLDS


def tasks_of(names: Mapping[str, bool], tables: Mapping[str, Table], scope: Scope, choice: Choice) -> list[Task]:
    """Everything that the named experiments need: detection first, then kernels and shares, in each the cheap first."""
    needs_ns = names["table2"] or names["abstention"] or names["sparsity"]
    methods = scope.methods if names["table2"] else (("NS",) if needs_ns else ())
    found = [
        task
        for chosen, seeds in ((methods, scope.seeds), (scope.methods if names["fresh"] else (), scope.fresh))
        for method in chosen
        for one in tables.values()
        for task in crossed(one, method, choice, seeds)
    ]
    return list(dict.fromkeys([*_cheap_first(found), *_cheap_first(_sensitivity(names, tables, choice))]))


def _sensitivity(names: Mapping[str, bool], tables: Mapping[str, Table], choice: Choice) -> list[Task]:
    sets, tasks = tables.values(), list[Task]()
    if names["kernels"] or names["shares"]:
        tasks += [task for one in sets for task in crossed(one, "NS", choice, (SENSITIVITY_SEED,))]
    if names["kernels"]:
        tasks += [task for kind in KERNELS for one in sets for task in kernel_tasks(one, choice, kind)]
    if names["shares"]:
        tasks += [task for share in SHARES for one in sets for task in share_tasks(one, choice, share)]
    return tasks


def _cheap_first(tasks: list[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: task.dataset in LARGE)
