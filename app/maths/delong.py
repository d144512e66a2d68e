"""Areas under ROC curves of scores for the same people, and whether two differ: DeLong et al. 1988.

Positives i = 1..m, negatives j = 1..n. With ψ = 1, ½ or 0 where a positive scores above, level with, below a negative,

    V_i = mean over j of ψ_ij,    W_j = mean over i of ψ_ij,    area = mean V = mean W,
    covariance of the areas = cov(V)/m + cov(W)/n        (sample covariances over the scores)

V and W come from midranks (Sun and Xu 2014): a positive's rank among everybody less its rank among the positives is
the number of negatives below it, ties counted half.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from scipy.stats import rankdata

from app.maths.metrics import Labels
from app.maths.moments import Array


@dataclass(frozen=True, slots=True)
class Areas:
    area: Array  # [K]
    covariance: Array  # [K, K] of the estimates

    @property
    def standard_error(self) -> Array:
        """[K]"""
        return np.sqrt(np.diag(self.covariance))


@dataclass(frozen=True, slots=True)
class Comparison:
    difference: float  # the first area less the second
    standard_error: float
    p: float  # two-sided


def areas(labels: Labels, scores: Array) -> Areas:
    """Of K scores [K, N] of the same N people, of whom at least two are positive and two negative."""
    positive = np.asarray(labels).astype(bool)
    if not np.isfinite(scores).all():
        raise ValueError("Every score must be a finite number.")
    if min(positive.sum(), (~positive).sum()) < 2:
        raise ValueError("A variance needs two people with and two without the label.")
    ranks = rankdata(scores, axis=1)
    of_positives = _share_below(ranks, scores, positive)  # V [K, m]
    of_negatives = 1.0 - _share_below(ranks, scores, ~positive)  # W [K, n]
    return Areas(of_positives.mean(axis=1), _covariance_of_mean(of_positives) + _covariance_of_mean(of_negatives))


def compare(found: Areas, first: int, second: int) -> Comparison:
    """The test that two of the areas are equal, normal for large numbers. Equal rankings have p = 1."""
    difference = float(found.area[first] - found.area[second])
    c = found.covariance
    # Equal rankings leave rounding, which may be negative.
    error = float(np.sqrt(max(c[first, first] + c[second, second] - 2.0 * c[first, second], 0.0)))
    return Comparison(difference, error, _two_sided(difference, error))


def _share_below(ranks: Array, scores: Array, group: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Array:
    """Of the people outside the group, the share that each of the group exceeds; ties count half."""
    among_itself = rankdata(scores[:, group], axis=1)
    return np.asarray((ranks[:, group] - among_itself) / np.count_nonzero(~group))


def _covariance_of_mean(components: Array) -> Array:
    return np.asarray(np.atleast_2d(np.cov(components)) / components.shape[1])


def _two_sided(difference: float, error: float) -> float:
    if error == 0.0:
        return float(difference == 0.0)
    return float(2.0 * ndtr(-abs(difference) / error))
