"""What every table is made from: the data, the chosen recipe and the answers of the fits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.benchmark.paper.data import Table
from app.benchmark.paper.plan import Scope, crossed
from app.benchmark.paper.pooled import Pooled
from app.benchmark.paper.recipes import Choice
from app.benchmark.paper.work import Done, Task
from app.maths.moments import Array


@dataclass(frozen=True, slots=True)
class Spread:
    """Values over injections."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def sd(self) -> float:
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    @property
    def standard_error(self) -> float:
        return self.sd / float(np.sqrt(len(self.values)))


@dataclass(frozen=True)
class Study:
    tables: Mapping[str, Table]
    scope: Scope
    choice: Choice
    results: Mapping[Task, Done]
    _pooled: dict[tuple[Task, ...], Pooled] = field(default_factory=dict)  # HDIs are costly and asked for twice

    def pooled(self, dataset: str, method: str, seed: int) -> Pooled:
        return self.pool(crossed(self.tables[dataset], method, self.choice, (seed,)))

    def pool(self, tasks: Sequence[Task]) -> Pooled:
        key = tuple(tasks)
        if key not in self._pooled:
            self._pooled[key] = Pooled.of([self.results[task] for task in tasks])
        return self._pooled[key]


def paired(one: Spread, other: Spread) -> Spread:
    """Differences by injection."""
    return spread([mine - theirs for mine, theirs in zip(one.values, other.values, strict=True)])


def spread(values: Sequence[float] | Array) -> Spread:
    return Spread(tuple(float(value) for value in values))
