"""What every table is made from: the data, the chosen recipe, and the answers of the fits, pooled by injection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from app.benchmark.paper.data import Table
from app.benchmark.paper.protocol import Answer, Done, Labels, Rows, Task
from app.benchmark.paper.recipes import Choice
from app.benchmark.paper.tasks import Scope, crossed
from app.maths.moments import Array, Moments
from app.maths.score.normalcy import context_width, expected_score, hdi
from app.maths.statistics import average_precision, roc_auc


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
class Pooled:
    """The test rows of all folds of one injection together, and the scores that follow from the answers."""

    rows: Rows  # [N] of the data set, ascending
    y: Array  # [N] after the injection
    anomalous: Labels  # [N]
    answer: Answer

    @classmethod
    def of(cls, results: Sequence[Done]) -> "Pooled":
        rows = np.concatenate([one.rows for one in results]).astype(np.int64)
        order = np.argsort(rows)
        names = results[0].answer
        return cls(
            rows[order],
            np.concatenate([one.y for one in results])[order],
            np.concatenate([one.anomalous for one in results]).astype(bool)[order],
            {name: np.concatenate([one.answer[name] for one in results])[order] for name in names},
        )

    @cached_property
    def moments(self) -> Moments:
        return Moments(**self.answer)

    @cached_property
    def score(self) -> Array:
        """|E[NS]|, or what the method calls its score."""
        return self.answer["score"] if "score" in self.answer else np.abs(expected_score(self.y, self.moments))

    @cached_property
    def predictive_score(self) -> Array:
        """|y - m1| in units of the standard deviation of a new observation."""
        m = self.moments
        return np.asarray(np.abs(self.y - m.m1) / np.sqrt(m.v1 + np.exp(2.0 * m.m2 + 2.0 * m.v2)))

    @cached_property
    def width(self) -> Array:
        """i(x, y): the width of the 95% HDI of NS."""
        return np.asarray(hdi(self.y, self.moments).width)

    @cached_property
    def context_width(self) -> Array:
        """W2: the same at m1 + 2 exp(m2), which the context alone decides."""
        return context_width(self.moments)


@dataclass(frozen=True)
class Study:
    tables: Mapping[str, Table]
    scope: Scope
    choice: Choice
    results: Mapping[Task, Done]
    _pooled: dict[tuple[Task, ...], Pooled] = field(default_factory=dict)  # HDIs are costly and needed twice

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


def areas(anomalous: Labels, score: Array) -> tuple[float, float]:
    """ROC AUC and PR AUC (average precision)."""
    return roc_auc(anomalous, score), average_precision(anomalous, score)
