"""ROCOD: what contextual neighbours do, mixed with what a global regression expects (Liang and Parthasarathy 2016).

The local expectation is the mean y of the training rows within a Gower distance; the global one is a line. The more
neighbours a row has, the more the local one counts: its weight is sqrt(neighbours / most neighbours of any training
row). The score is the squared distance of y to the mixture.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.benchmark.paper.methods import Answer
from app.maths.moments import Array
from app.maths.statistics.linear import fit_linear

REACH = 0.1  # Gower distance: the mean over contexts of |difference| / range; a similarity of at least 0.9


class Rocod:
    def __init__(self, seed: int) -> None:
        pass  # neighbours and lines have no chance in them

    def fit(self, X: Array, y: Array) -> None:
        span = np.ptp(X, axis=0)
        self._X, self._y, self._span = X, y, np.where(span > 0.0, span, 1.0)
        self._line = fit_linear(X, y)
        # A training row is no neighbour of its own.
        self._most = max(int(max(near.sum() for near in self._neighbours(X))) - 1, 1)

    def answer(self, X: Array, y: Array) -> Answer:
        near = list(self._neighbours(X))
        count = np.array([here.sum() for here in near])
        local = np.array([self._y[here].mean() if here.any() else 0.0 for here in near])
        weight = np.minimum(np.sqrt(count / self._most), 1.0)
        expected = weight * local + (1.0 - weight) * self._line.expected(X)
        return {"score": (y - expected) ** 2}

    def _neighbours(self, X: Array) -> Iterator[NDArray[np.bool_]]:
        """For each row, which training rows are near: a row at a time, since Abalone's matrix has 11 million cells."""
        for row in X:
            yield (np.abs(self._X - row) / self._span).mean(axis=1) <= REACH
