"""QCAD: how rare is y among the conditional percentiles of a quantile regression forest (Li and van Leeuwen 2023).

With percentiles q_0 <= ... <= q_100 of y given x, an y between q_k and q_{k+1} scores the width of that interval: wide
means few neighbours have such values. Outside [q_0, q_100] the score is the widest interval times one plus the
distance in units of the interquartile range.

The original grows a small forest for every row, on the half of the data nearest to it; here one forest of more trees
learns from all training rows, since the leaves of a forest are neighbourhoods already and the cost falls N-fold.
"""

import numpy as np
from quantile_forest import RandomForestQuantileRegressor

from app.benchmark.paper.methods import Answer
from app.maths.moments import Array

TREES = 100
SMALLEST_NODE = 10  # rows that a node needs to be split
PERCENTILES = np.linspace(0.0, 1.0, 101)
TINY = 1e-9  # where half of the neighbours share one value


class Qcad:
    def __init__(self, seed: int) -> None:
        self._forest = RandomForestQuantileRegressor(
            n_estimators=TREES,
            min_samples_split=SMALLEST_NODE,
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
