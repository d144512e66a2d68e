"""How well a score ranks and is calibrated, how many people may fall into a tail, and the linear comparators.

Areas under ROC curves of scores for the same people, and whether two differ: DeLong et al. 1988.

Positives i = 1..m, negatives j = 1..n. With ψ = 1, ½ or 0 where a positive scores above, level with, below a negative,

    V_i = mean over j of ψ_ij,    W_j = mean over i of ψ_ij,    area = mean V = mean W,
    covariance of the areas = cov(V)/m + cov(W)/n        (sample covariances over the scores)

V and W come from midranks (Sun and Xu 2014): a positive's rank among everybody less its rank among the positives is
the number of negatives below it, ties counted half.

How many of n people may fall into a tail: exact binomial limits, and what such limits can find.

scipy's `bdtr(k, n, p)` is P(X <= k), `bdtri` its inverse in p.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtri, ndtr

from app.maths.moments import Array

Labels = NDArray[np.bool_] | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of a curve, from the highest threshold to the lowest; tied scores share one point."""

    x: Array  # [K] false positive rate, or recall
    y: Array  # [K] true positive rate, or precision
    thresholds: Array  # [K] called positive: score >= threshold


def roc_auc(labels: Labels, scores: Array) -> float:
    """P(a positive scores higher than a negative) + ½·P(they tie): the Mann-Whitney statistic."""
    positive = _checked(labels, scores)
    n, m = int(positive.sum()), int((~positive).sum())
    return float((_ranks(scores)[positive].sum() - n * (n + 1) / 2.0) / (n * m))


def average_precision(labels: Labels, scores: Array) -> float:
    """Area under the precision-recall curve by steps: Σ (recall_k - recall_{k-1})·precision_k."""
    curve = precision_recall_curve(labels, scores)
    return float(np.sum(np.diff(curve.x, prepend=0.0) * curve.y))


def roc_curve(labels: Labels, scores: Array) -> Curve:
    """Begins at (0, 0), threshold +inf, and ends at (1, 1)."""
    true, called, thresholds = _counts(labels, scores)
    false = called - true
    return Curve(
        np.concatenate([[0.0], false / false[-1]]),
        np.concatenate([[0.0], true / true[-1]]),
        np.concatenate([[np.inf], thresholds]),
    )


def precision_recall_curve(labels: Labels, scores: Array) -> Curve:
    """Recall on x, precision on y. Without the conventional point (0, 1), which no threshold reaches."""
    true, called, thresholds = _counts(labels, scores)
    return Curve(true / true[-1], true / called, thresholds)


def weighted_kendall_tau(first: Array, second: Array) -> float:
    """Kendall's tau with additive hyperbolic weights: agreement among the largest values counts most."""
    from scipy.stats import weightedtau  # as below

    return float(weightedtau(first, second).statistic)


def kolmogorov_distance(pit: Array) -> float:
    """sup over u of |F(u) - u|, F the empirical distribution of probability integral transforms in [0, 1]."""
    ordered = np.sort(pit)
    n = len(ordered)
    above = np.arange(1, n + 1) / n - ordered
    below = ordered - np.arange(n) / n
    return float(max(above.max(), below.max()))


def _counts(labels: Labels, scores: Array) -> tuple[Array, Array, Array]:
    """At each distinct score from high to low: positives called, all called, the score."""
    positive = _checked(labels, scores)
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last_of_tie = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    return np.cumsum(positive[order], dtype=np.float64)[last_of_tie], last_of_tie + 1.0, ranked[last_of_tie]


def _checked(labels: Labels, scores: Array) -> NDArray[np.bool_]:
    positive = np.asarray(labels).astype(bool)
    if not np.isfinite(scores).all():
        raise ValueError("Every score must be a finite number.")
    if positive.all() or not positive.any():
        raise ValueError("A ranking is judged from people with and people without the label; one kind is missing.")
    return positive


@dataclass(frozen=True, slots=True)
class RocAreas:
    area: Array  # [K]
    covariance: Array  # [K, K] of the estimates

    @property
    def standard_error(self) -> Array:
        """[K]"""
        return np.sqrt(np.diag(self.covariance))


@dataclass(frozen=True, slots=True)
class AreaDifference:
    difference: float  # the first area less the second
    standard_error: float
    p: float  # two-sided


def roc_areas(labels: Labels, scores: Array) -> RocAreas:
    """Of K scores [K, N] of the same N people, of whom at least two are positive and two negative."""
    positive = np.asarray(labels).astype(bool)
    if not np.isfinite(scores).all():
        raise ValueError("Every score must be a finite number.")
    if min(positive.sum(), (~positive).sum()) < 2:
        raise ValueError("A variance needs two people with and two without the label.")
    ranks = _ranks(scores)
    of_positives = _share_below(ranks, scores, positive)  # V [K, m]
    of_negatives = 1.0 - _share_below(ranks, scores, ~positive)  # W [K, n]
    return RocAreas(of_positives.mean(axis=1), _covariance_of_mean(of_positives) + _covariance_of_mean(of_negatives))


def compare_areas(found: RocAreas, first: int, second: int) -> AreaDifference:
    """The test that two of the areas are equal, normal for large numbers. Equal rankings have p = 1."""
    difference = float(found.area[first] - found.area[second])
    c = found.covariance
    # Equal rankings leave rounding, which may be negative.
    error = float(np.sqrt(max(c[first, first] + c[second, second] - 2.0 * c[first, second], 0.0)))
    return AreaDifference(difference, error, _two_sided(difference, error))


def _ranks(scores: Array) -> Array:
    """Along the last axis; ties share their mean rank."""
    from scipy.stats import rankdata  # takes as long to import as all that serving needs, and serving ranks nothing

    return np.asarray(rankdata(scores, axis=-1))


def _share_below(ranks: Array, scores: Array, group: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Array:
    """Of the people outside the group, the share that each of the group exceeds; ties count half."""
    among_itself = _ranks(scores[:, group])
    return np.asarray((ranks[:, group] - among_itself) / np.count_nonzero(~group))


def _covariance_of_mean(components: Array) -> Array:
    return np.asarray(np.atleast_2d(np.cov(components)) / components.shape[1])


def _two_sided(difference: float, error: float) -> float:
    if error == 0.0:
        return float(difference == 0.0)
    return float(2.0 * ndtr(-abs(difference) / error))


def count_limits(people: int, share: float, error: float) -> tuple[int, int]:
    """The smallest and the largest count that are not too rare: P(X <= k) and P(X >= k) both above error / 2.

    A count outside comes by chance in at most `error` of the samples.
    """
    counts = np.arange(people + 1)
    at_most = bdtr(counts.astype(np.float64), people, share)
    at_least = 1.0 - np.concatenate([[0.0], at_most[:-1]])
    usual = np.flatnonzero((at_most > error / 2.0) & (at_least > error / 2.0))
    return int(usual[0]), int(usual[-1])


def shares_found(people: int, low: int, high: int, chance: float) -> tuple[float | None, float | None]:
    """Shares up to the first and from the second on leave low..high with this chance or more; None: no share does."""
    least = float(bdtri(low - 1.0, people, chance)) if low > 0 else None
    most = float(bdtri(float(high), people, 1.0 - chance)) if high < people else None
    return least, most


# E|e| = sd·sqrt(2/π) for a normal residual e, so the expected absolute residual times this is its sd.
SD_PER_MEAN_ABSOLUTE = float(np.sqrt(np.pi / 2.0))

# A linear model of |residual| can cross zero. Below a quarter of the overall spread it no longer describes people.
MIN_SD_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class LinearReference:
    """y = xb + e with x = (1, covariates).

    Linear:  Z = (y - xb)/S,       S² = mean squared residual of the training people.
    Altman:  Z = (y - xb)/SD(x),   SD(x) = sqrt(π/2)·xg, g by least squares of |residual| on x.
    """

    coefficients: Array  # [D+1] b, mm per unit, the constant first
    residual_sd: float  # S, mm
    absolute_residual_coefficients: Array  # [D+1] g
    _both: Array = field(init=False, repr=False, compare=False)  # [D+1, 2] b and g side by side
    _b: list[float] = field(init=False, repr=False, compare=False)
    _g: list[float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_both", np.column_stack([self.coefficients, self.absolute_residual_coefficients]))
        object.__setattr__(self, "_b", self.coefficients.tolist())
        object.__setattr__(self, "_g", self.absolute_residual_coefficients.tolist())

    def z_scores(self, X: Array, y: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The linear Z [N], Altman's Z [N], and where Altman's spread can be believed: only there his Z may be read."""
        expected, absolute = (X @ self._both[1:] + self._both[0]).T
        residual = y - expected
        applies = absolute >= MIN_SD_SHARE * self.residual_sd / SD_PER_MEAN_ABSOLUTE
        spread = SD_PER_MEAN_ABSOLUTE * np.where(applies, absolute, 1.0)
        return residual / self.residual_sd, residual / spread, applies

    def z_scores_of_one(self, x: Sequence[float], y: float) -> tuple[float, float, bool]:
        """The same for one person, with floats."""
        expected, absolute = (sum(map(operator.mul, each, (1.0, *x))) for each in (self._b, self._g))
        applies = absolute >= MIN_SD_SHARE * self.residual_sd / SD_PER_MEAN_ABSOLUTE
        spread = SD_PER_MEAN_ABSOLUTE * (absolute if applies else 1.0)
        return (y - expected) / self.residual_sd, (y - expected) / spread, applies

    def expected(self, X: Array) -> Array:
        return np.asarray(X @ self.coefficients[1:] + self.coefficients[0])

    def linear_z(self, X: Array, y: Array) -> Array:
        return (y - self.expected(X)) / self.residual_sd

    def altman_sd(self, X: Array) -> Array:
        """[N] mm as the formula gives it, negative where the line has crossed zero."""
        g = self.absolute_residual_coefficients
        return np.asarray(SD_PER_MEAN_ABSOLUTE * (X @ g[1:] + g[0]))

    def altman_applies(self, X: Array) -> NDArray[np.bool_]:
        return self.altman_sd(X) >= MIN_SD_SHARE * self.residual_sd

    def altman_z(self, X: Array, y: Array) -> Array:
        """To be read only where `altman_applies`."""
        return (y - self.expected(X)) / self.altman_sd(X)


def fit_linear(X: Array, y: Array) -> LinearReference:
    design = _with_constant(X)
    coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
    residuals = y - design @ coefficients
    spread = np.linalg.lstsq(design, np.abs(residuals), rcond=None)[0]
    return LinearReference(coefficients, float(np.sqrt(np.mean(residuals**2))), spread)


def _with_constant(X: Array) -> Array:
    return np.column_stack([np.ones(len(X)), X])
