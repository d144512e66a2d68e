"""Detectors that know no context: PyOD's, with its default settings, on contexts and y side by side.

The paper gives them the units of the files, where a column of large numbers outweighs the rest. The `Standardised` ones
see every column, y too, less its mean and in units of its standard deviation, both from the training rows of the fold.
"""

from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from app.benchmark.paper.methods import Answer
from app.maths.moments import Array


class _Joint:
    _detector: Any

    def fit(self, X: Array, y: Array) -> None:
        self._learn(np.column_stack([X, y]))

    def answer(self, X: Array, y: Array) -> Answer:
        return {"score": self._judge(np.column_stack([X, y]))}

    def _learn(self, rows: Array) -> None:
        self._detector.fit(rows)

    def _judge(self, rows: Array) -> Array:
        return np.asarray(self._detector.decision_function(rows), dtype=np.float64)


class _Standardised(_Joint):
    def _learn(self, rows: Array) -> None:
        self._units = StandardScaler().fit(rows)
        super()._learn(self._units.transform(rows))

    def _judge(self, rows: Array) -> Array:
        return super()._judge(self._units.transform(rows))


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


class StandardisedForest(_Standardised, IsolationForest):
    pass


class StandardisedOutlierFactor(_Standardised, LocalOutlierFactor):
    pass


class StandardisedHistograms(_Standardised, Histograms):
    pass
