"""One task: fit a method on the training rows of a fold and answer for the rows left out.

A pure function of its arguments, so that it can run in any process of any machine.
"""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from app.benchmark.paper.methods import make
from app.benchmark.paper.protocol import Labels, Rows, folds, inject, injected
from app.benchmark.paper.recipes import Choice
from app.maths.moments import Array

INNER_FOLDS = 3
INNER_SEED = 7000  # of the anomalies that judge a recipe; no seed of an experiment comes near


@dataclass(frozen=True, slots=True)
class Task:
    dataset: str
    anomalies: int
    seed: int  # of the injection and of the folds
    fold: int
    method: str
    choice: Choice | None = None
    inner: int | None = None  # a fold within the training rows, to judge a recipe without the test rows
    at_most: int | None = None  # rows of the training part that the inner folds use

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"choice": self.choice.as_dict() if self.choice else None}


@dataclass(frozen=True, slots=True)
class Done:
    """`rows` are the rows of the data set that were asked about, `y` what they were asked with."""

    rows: list[int]
    y: list[float]
    anomalous: list[bool]
    answer: dict[str, list[float]]
    wall_seconds: float  # of the fit
    cpu_seconds: float
    notes: list[str] = field(default_factory=list)


def perform(task: Task, X: Array, y: Array) -> Done:
    """X as published, y scaled to [0, 1] and not yet injected."""
    contaminated = injected(y, task.anomalies, task.seed)
    training, test = list(folds(len(y), task.seed))[task.fold]
    if task.inner is None:
        return _fit_and_ask(task, X, training, contaminated.y, test, contaminated.y, contaminated.anomalous)
    return _inner(task, task.inner, X, training, contaminated.y)


def _inner(task: Task, inner: int, X: Array, training: Rows, y: Array) -> Done:
    """Within the training rows of the fold: known anomalies go into the validation rows alone.

    The anomalies of the outer injection stay where they are, in training and in validation, and nobody is told.
    """
    rng = np.random.default_rng([INNER_SEED, task.seed, task.fold, inner])
    rows = np.sort(np.random.default_rng([INNER_SEED, task.seed, task.fold]).permutation(training)[: task.at_most])
    fitted, asked = list(folds(len(rows), INNER_SEED + task.seed, INNER_FOLDS))[inner]
    planted = inject(y[rows[asked]], max(5, round(task.anomalies * len(asked) / len(y))), rng)
    judged, anomalous = y.copy(), np.zeros(len(y), dtype=bool)
    judged[rows[asked]], anomalous[rows[asked]] = planted.y, planted.anomalous
    return _fit_and_ask(task, X, rows[fitted], y, rows[asked], judged, anomalous)


def _fit_and_ask(task: Task, X: Array, training: Rows, y: Array, test: Rows, asked: Array, anomalous: Labels) -> Done:
    method = make(task.method, task.choice, task.seed)
    wall, cpu = time.perf_counter(), time.process_time()
    method.fit(X[training], y[training])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    answer = method.answer(X[test], asked[test])
    return Done(
        test.tolist(),
        asked[test].tolist(),
        anomalous[test].tolist(),
        {name: values.tolist() for name, values in answer.items()},
        wall,
        cpu,
        getattr(method, "second_attempts", []),
    )
