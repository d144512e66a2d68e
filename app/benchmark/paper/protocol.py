"""The paper's protocol: anomalies injected into the whole set, then five folds; contexts stay as they are."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from app.maths.moments import Array

SEEDS = (42, 43, 44, 45, 46)
FRESH_SEEDS = (1042, 1043, 1044, 1045, 1046)
FOLDS = 5
SMALLEST, LARGEST = 0.1, 0.5  # of |epsilon|, on the scale where y runs from 0 to 1

Rows = NDArray[np.int64]
Labels = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Injected:
    y: Array  # [N]
    anomalous: Labels  # [N]


def inject(y: Array, anomalies: int, rng: np.random.Generator) -> Injected:
    """y + epsilon at random rows, |epsilon| uniform in [0.1, 0.5], either sign with equal chance."""
    rows = rng.choice(len(y), anomalies, replace=False)
    epsilon = rng.uniform(SMALLEST, LARGEST, anomalies) * rng.choice([-1.0, 1.0], anomalies)
    changed, anomalous = y.copy(), np.zeros(len(y), dtype=bool)
    changed[rows] += epsilon
    anomalous[rows] = True
    return Injected(changed, anomalous)


def injected(y: Array, anomalies: int, seed: int) -> Injected:
    return inject(y, anomalies, np.random.default_rng(seed))


def folds(rows: int, seed: int, count: int = FOLDS) -> Iterator[tuple[Rows, Rows]]:
    """(training rows, test rows), every row once in a test."""
    yield from KFold(count, shuffle=True, random_state=seed).split(np.empty((rows, 0)))
