"""The methods that NS is compared with in the paper's Table 2, and three of them again on standardised columns.

Each learns from the training rows and answers for the test rows. Last, how sparse a context is.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from app.benchmark.paper.protocol import Answer
from app.maths.moments import Array
from app.maths.statistics import MIN_SD_SHARE, LinearReference, fit_linear

TREES = 100  # of QCAD
MIN_NODE_SIZE = 10  # rows that a node needs to be split
PERCENTILES = np.linspace(0.0, 1.0, 101)
TINY = 1e-9  # where half of the neighbours share one value
REACH = 0.1  # of ROCOD, a Gower distance: the mean over contexts of |difference| / range; a similarity of at least 0.9
CONTEXT_DETECTORS = ("IForest", "LOF", "HBOS")


class LinearZ:
    """One residual spread."""

    def __init__(self, seed: int) -> None:
        pass  # least squares has no chance in it

    def fit(self, X: Array, y: Array) -> None:
        self._line = fit_linear(X, y)

    def answer(self, X: Array, y: Array) -> Answer:
        return {"score": np.abs(self._line.linear_z(X, y))}


class Altman(LinearZ):
    """A residual spread that is linear in the contexts."""

    def answer(self, X: Array, y: Array) -> Answer:
        return {"score": np.abs(altman_z(self._line, X, y))}


def altman_z(line: LinearReference, X: Array, y: Array) -> Array:
    """A fitted spread under a quarter of the overall one is replaced by that quarter."""
    sd = np.maximum(line.altman_sd(X), MIN_SD_SHARE * line.residual_sd)
    return np.asarray((y - line.expected(X)) / sd)


class Qcad:
    """QCAD: how rare is y among the conditional percentiles of a quantile regression forest?

    By Li and van Leeuwen (2023). With percentiles q_0 <= ... <= q_100 of y given x, an y between q_k and q_{k+1} scores
    the width of that interval: wide means few neighbours have such values. Outside [q_0, q_100] the score is the widest
    interval times one plus the distance in units of the interquartile range.

    The original grows a small forest for every row, on the half of the data nearest to it; here one forest of more
    trees learns from all training rows, since the leaves of a forest are neighbourhoods already and the cost falls
    N-fold.
    """

    def __init__(self, seed: int) -> None:
        from quantile_forest import RandomForestQuantileRegressor

        self._forest = RandomForestQuantileRegressor(
            n_estimators=TREES,
            min_samples_split=MIN_NODE_SIZE,
            max_samples_leaf=None,  # every training row counts in its leaf ...
            random_state=seed,
            n_jobs=1,
        )

    def fit(self, X: Array, y: Array) -> None:
        self._forest.fit(X, y)

    def answer(self, X: Array, y: Array) -> Answer:
        # ... and every tree as much as the others, whatever the size of its leaf: Meinshausen's forest.
        percentiles = self._forest.predict(X, quantiles=PERCENTILES.tolist(), weighted_leaves=True)
        return {"score": percentile_score(percentiles, y)}


def percentile_score(q: Array, y: Array) -> Array:
    """[N] from percentiles q [N, 101] and y [N]."""
    widths = np.diff(q, axis=1)
    holds = (q[:, :-1] <= y[:, None]) & (y[:, None] <= q[:, 1:])
    inside = np.where(holds, widths, 0.0).max(axis=1)  # y on a border lies in two intervals: the rarer one counts
    beyond = np.maximum(np.maximum(q[:, 0] - y, y - q[:, -1]), 0.0)
    quartiles = np.maximum(q[:, 75] - q[:, 25], TINY)
    return np.where(beyond > 0.0, (1.0 + beyond / quartiles) * np.maximum(widths.max(axis=1), TINY), inside)


class Rocod:
    """ROCOD: what contextual neighbours do, mixed with what a global regression expects (Liang and Parthasarathy 2016).

    The local expectation is the mean y of the training rows within a Gower distance; the global one is a line. The more
    neighbours a row has, the more the local one counts: its weight is sqrt(neighbours / most neighbours of any training
    row). The score is the squared distance of y to the mixture.
    """

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


class _Joint:
    """Detectors that know no context: PyOD's, with its default settings, on contexts and y side by side."""

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
    """The paper gives these detectors the units of the files, where a column of large numbers outweighs the rest.

    These see every column, y too, less its mean and in units of its standard deviation, both from the training rows of
    the fold.
    """

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


def sparseness(X: Array, detector: str, seed: int) -> Array:
    """[N] by a detector that sees the contexts alone: larger is sparser.

    PyOD's default settings, fitted on all contexts, which no injection touches.
    """
    from pyod.models.hbos import HBOS
    from pyod.models.iforest import IForest
    from pyod.models.lof import LOF

    made = {"IForest": lambda: IForest(random_state=seed), "LOF": LOF, "HBOS": HBOS}[detector]()
    made.fit(X)
    return np.asarray(made.decision_scores_, dtype=np.float64)
