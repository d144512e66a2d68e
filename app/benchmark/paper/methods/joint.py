"""Detectors that know no context: PyOD's, with its default settings, on contexts and y side by side."""

from typing import Any

import numpy as np

from app.benchmark.paper.methods import Answer
from app.maths.moments import Array


class _Joint:
    _detector: Any

    def fit(self, X: Array, y: Array) -> None:
        self._detector.fit(_beside(X, y))

    def answer(self, X: Array, y: Array) -> Answer:
        return {"score": np.asarray(self._detector.decision_function(_beside(X, y)), dtype=np.float64)}


class IsolationForest(_Joint):
    def __init__(self, seed: int) -> None:
        from pyod.models.iforest import IForest

        self._detector = IForest(random_state=seed)


class LocalOutlierFactor(_Joint):
    def __init__(self, seed: int) -> None:
        from pyod.models.lof import LOF

        self._detector = LOF()


class Histograms(_Joint):
    def __init__(self, seed: int) -> None:
        from pyod.models.hbos import HBOS

        self._detector = HBOS()


def _beside(X: Array, y: Array) -> Array:
    return np.column_stack([X, y])
