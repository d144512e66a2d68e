"""The linear Z-score with one residual spread, and Altman's with a linear one."""

import numpy as np

from app.benchmark.paper.methods import Answer
from app.maths.linear import SMALLEST_SD_SHARE, fit_linear
from app.maths.moments import Array


class LinearZ:
    def __init__(self, seed: int) -> None:
        pass  # least squares has no chance in it

    def fit(self, X: Array, y: Array) -> None:
        self._line = fit_linear(X, y)

    def answer(self, X: Array, y: Array) -> Answer:
        return {"score": np.abs(self._line.linear_z(X, y))}


class Altman(LinearZ):
    def answer(self, X: Array, y: Array) -> Answer:
        """Where the line of the spread has sunk under a quarter of the overall one, that quarter takes its place."""
        sd = np.maximum(self._line.altman_sd(X), SMALLEST_SD_SHARE * self._line.residual_sd)
        return {"score": np.abs(y - self._line.expected(X)) / sd}
