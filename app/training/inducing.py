"""Where the inducing points start: the centres of k-means over the standardised contexts."""

import warnings

import numpy as np
from scipy.cluster.vq import kmeans2

from app.maths.moments import Array


def starting_points(X: Array, count: int, rng: np.random.Generator) -> Array:
    """[M, D] with M = `count`, or fewer where there are fewer different people."""
    different = len(np.unique(X, axis=0))
    with warnings.catch_warnings():
        # An empty cluster keeps its first centre, a person: as good a start as any.
        warnings.simplefilter("ignore", UserWarning)
        centres, _ = kmeans2(X, min(count, different), iter=20, minit="++", seed=rng)
    return np.asarray(centres, dtype=np.float64)
