"""The linear Z-score with one residual spread, and Altman's with a linear one."""

import numpy as np

from app.benchmark.paper.methods import Answer
from app.maths.moments import Array
from app.maths.statistics.linear import SMALLEST_SD_SHARE, LinearReference, fit_linear


class LinearZ:
    def __init__(self, seed: int) -> None:
        pass  # least squares has no chance in it

    def fit(self, X: Array, y: Array) -> None:
        self._line = fit_linear(X, y)

    def answer(self, X: Array, y: Array) -> Answer:
        return {"score": np.abs(self._line.linear_z(X, y))}


class Altman(LinearZ):
    def answer(self, X: Array, y: Array) -> Answer:
        return {"score": np.abs(altman_z(self._line, X, y))}


def altman_z(line: LinearReference, X: Array, y: Array) -> Array:
    """Where the line of the spread has sunk under a quarter of the overall one, that quarter takes its place."""
    sd = np.maximum(line.altman_sd(X), SMALLEST_SD_SHARE * line.residual_sd)
    return np.asarray((y - line.expected(X)) / sd)
