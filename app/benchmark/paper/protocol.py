"""The paper's protocol: anomalies injected into the whole set, then five folds; contexts stay as they are.

One task fits a method on the training rows of a fold and answers for the rows left out. It is a pure function of its
arguments, so that it can run in any process of any machine.

An answer is what a score is made of: one array `score` (the larger, the more anomalous), or for NS the four moments,
from which E[NS], the predictive score, the HDI and W2 follow without another fit (see `study`).
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from app.benchmark.paper.recipes import Choice
from app.maths.moments import Array

SEEDS = (42, 43, 44, 45, 46)
FRESH_SEEDS = (1042, 1043, 1044, 1045, 1046)
FOLDS = 5
MIN_SHIFT, MAX_SHIFT = 0.1, 0.5  # of |epsilon|, on the scale where y runs from 0 to 1
INNER_FOLDS = 3
INNER_SEED = 7000  # of the anomalies that judge a recipe; no seed of an experiment comes near

# Method -> module and class. Loaded on demand: NS needs TensorFlow and the rest does not.
METHODS = {
    "NS": ("normalcy_score", "NormalcyScore"),
    "NS_hom": ("normalcy_score", "NormalcyScore"),
    "Z-score": ("methods", "LinearZ"),
    "Altman": ("methods", "Altman"),
    "QCAD": ("methods", "Qcad"),
    "ROCOD": ("methods", "Rocod"),
    "IForest": ("methods", "IsolationForest"),
    "LOF": ("methods", "LocalOutlierFactor"),
    "HBOS": ("methods", "Histograms"),
    "IForest_std": ("methods", "StandardisedForest"),
    "LOF_std": ("methods", "StandardisedOutlierFactor"),
    "HBOS_std": ("methods", "StandardisedHistograms"),
}
FITTED = ("NS", "NS_hom")  # these take a Choice

Rows = NDArray[np.int64]
Labels = NDArray[np.bool_]
Answer = dict[str, Array]  # name -> [N of the test rows]


class Method(Protocol):
    def fit(self, X: Array, y: Array) -> None: ...

    def answer(self, X: Array, y: Array) -> Answer: ...


def module_of(method: str) -> str:
    return f"app.benchmark.paper.{METHODS[method][0]}"


def make(method: str, choice: Choice | None, seed: int) -> Method:
    made = getattr(import_module(module_of(method)), METHODS[method][1])
    method_object: Method = made(choice, seed) if method in FITTED else made(seed)
    return method_object


@dataclass(frozen=True, slots=True)
class Injected:
    y: Array  # [N]
    anomalous: Labels  # [N]


def inject(y: Array, anomalies: int, rng: np.random.Generator) -> Injected:
    """y + epsilon at random rows, |epsilon| uniform in [0.1, 0.5], either sign with equal chance."""
    rows = rng.choice(len(y), anomalies, replace=False)
    epsilon = rng.uniform(MIN_SHIFT, MAX_SHIFT, anomalies) * rng.choice([-1.0, 1.0], anomalies)
    changed, anomalous = y.copy(), np.zeros(len(y), dtype=bool)
    changed[rows] += epsilon
    anomalous[rows] = True
    return Injected(changed, anomalous)


def injected(y: Array, anomalies: int, seed: int) -> Injected:
    return inject(y, anomalies, np.random.default_rng(seed))


def folds(rows: int, seed: int, count: int = FOLDS) -> Iterator[tuple[Rows, Rows]]:
    """(training rows, test rows), every row once in a test."""
    yield from KFold(count, shuffle=True, random_state=seed).split(np.empty((rows, 0)))


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
    """The answers for the test rows: `rows` are their indices in the data set, `y` their injected targets."""

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
        return _fit_and_answer(task, X, training, contaminated.y, test, contaminated.y, contaminated.anomalous)
    return _inner(task, task.inner, X, training, contaminated.y)


def _inner(task: Task, inner: int, X: Array, training: Rows, y: Array) -> Done:
    """Within the training rows of the fold: known anomalies go into the validation rows alone.

    The anomalies of the outer injection stay where they are, in training and in validation, unlabelled.
    """
    rng = np.random.default_rng([INNER_SEED, task.seed, task.fold, inner])
    rows = np.sort(np.random.default_rng([INNER_SEED, task.seed, task.fold]).permutation(training)[: task.at_most])
    fitted, validation = list(folds(len(rows), INNER_SEED + task.seed, INNER_FOLDS))[inner]
    planted = inject(y[rows[validation]], max(5, round(task.anomalies * len(validation) / len(y))), rng)
    judged, anomalous = y.copy(), np.zeros(len(y), dtype=bool)
    judged[rows[validation]], anomalous[rows[validation]] = planted.y, planted.anomalous
    return _fit_and_answer(task, X, rows[fitted], y, rows[validation], judged, anomalous)


def _fit_and_answer(
    task: Task, X: Array, training: Rows, y: Array, test: Rows, y_test: Array, anomalous: Labels
) -> Done:
    method = make(task.method, task.choice, task.seed)
    wall, cpu = time.perf_counter(), time.process_time()
    method.fit(X[training], y[training])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    answer = method.answer(X[test], y_test[test])
    return Done(
        test.tolist(),
        y_test[test].tolist(),
        anomalous[test].tolist(),
        {name: values.tolist() for name, values in answer.items()},
        wall,
        cpu,
        getattr(method, "second_attempts", []),
    )
