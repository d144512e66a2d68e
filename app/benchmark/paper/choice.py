"""The recipe, chosen by inner folds: no label of the experiment is looked at.

In the training part of some outer folds, each candidate is fitted on inner training rows and judged on inner
validation rows that got known anomalies of their own. Areas under both curves are averaged by set; candidates are
ranked in each column (set, measure), ties sharing their mean rank; the lowest mean rank wins, and the earlier of two
equal ones, which is the simpler.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from app.benchmark.paper.data import Table
from app.benchmark.paper.plan import Scope, choosing
from app.benchmark.paper.pool import Report, Runner
from app.benchmark.paper.recipes import Choice
from app.benchmark.paper.work import Done
from app.maths.moments import Array, Moments
from app.maths.score.normalcy import expected_score
from app.maths.statistics.metrics import average_precision, roc_auc


@dataclass(frozen=True, slots=True)
class Judged:
    """The inner folds' verdict."""

    candidates: tuple[Choice, ...]
    sets: tuple[str, ...]
    outer: tuple[int, ...]  # folds whose training rows were used
    roc: Array  # [candidates, sets]
    pr: Array  # [candidates, sets]
    mean_rank: Array  # [candidates]
    fits: int
    cpu_seconds: float

    @property
    def winner(self) -> Choice:
        return self.candidates[int(np.argmin(self.mean_rank))]


def choose(tables: Mapping[str, Table], scope: Scope, runner: Runner, report: Report) -> Judged:
    plan = {(one, name): choosing(table, scope, one) for one in scope.candidates for name, table in tables.items()}
    results = runner.results([task for tasks in plan.values() for task in tasks], report, "choosing the recipe")
    areas = {key: np.mean([_areas(results[task]) for task in tasks], axis=0) for key, tasks in plan.items()}
    table = np.array([[areas[one, name] for name in tables] for one in scope.candidates])  # [candidates, sets, 2]
    seconds = sum(result.cpu_seconds for result in results.values())
    named = scope.candidates, tuple(tables), scope.outer
    return Judged(*named, table[..., 0], table[..., 1], mean_ranks(table), len(results), seconds)


def mean_ranks(areas: Array) -> Array:
    """[candidates] from areas [candidates, sets, 2]; rank 1 is the largest area. Areas equal to 1e-9 are ties."""
    columns = -np.round(areas.reshape(len(areas), -1), 9)
    return np.asarray(rankdata(columns, axis=0).mean(axis=1))


def _areas(result: Done) -> Sequence[float]:
    moments = Moments(**{name: np.array(values) for name, values in result.answer.items()})
    score, anomalous = np.abs(expected_score(np.array(result.y), moments)), np.array(result.anomalous)
    return roc_auc(anomalous, score), average_precision(anomalous, score)
