"""Table 2 and the fresh seeds: areas under the curves by method, set and injection."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.benchmark.paper.pooled import Pooled, areas
from app.benchmark.paper.study import Spread, Study, spread
from app.maths.moments import Array


@dataclass(frozen=True, slots=True)
class Cell:
    roc: Spread
    pr: Spread


Rowwise = dict[str, Cell]  # set -> cell


def _score(pooled: Pooled) -> Array:
    return pooled.score


def table2(study: Study) -> dict[str, Rowwise]:
    return {method: row(study, method, study.scope.seeds) for method in study.scope.methods}


def fresh(study: Study) -> dict[str, Rowwise]:
    """Every method on seeds that nobody had looked at."""
    return {method: row(study, method, study.scope.fresh) for method in study.scope.methods}


def row(study: Study, method: str, seeds: Sequence[int], scored: Callable[[Pooled], Array] = _score) -> Rowwise:
    return {name: _cell([study.pooled(name, method, seed) for seed in seeds], scored) for name in study.tables}


def predictive_row(study: Study) -> Rowwise:
    """The predictive score of the same fits: beside NS, not in its place."""
    return row(study, "NS", study.scope.seeds, lambda pooled: pooled.predictive_score)


def _cell(injections: Sequence[Pooled], scored: Callable[[Pooled], Array]) -> Cell:
    both = [areas(one.anomalous, scored(one)) for one in injections]
    return Cell(spread([roc for roc, _ in both]), spread([pr for _, pr in both]))
