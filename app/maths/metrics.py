"""How well a score ranks (ROC, precision and recall, weighted Kendall tau) and how well it is calibrated."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, weightedtau

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
    return float((rankdata(scores)[positive].sum() - n * (n + 1) / 2.0) / (n * m))


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
