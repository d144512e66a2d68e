"""The exact distribution of the normalcy score NS = (y - f1) e^{-f2}. No sampling: the same bits every time.

y, t and the measurement variance are numbers or arrays that broadcast against the moments [N]; so thresholds [K, 1]
give probabilities [K, N]. A measurement variance (mm²) is added to v1: the score of the error-free diameter.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.maths.moments import Array, Intervals, Moments
from app.maths.score.canonical_form import (
    SCALAR_MAX_PEOPLE,
    Oriented,
    Values,
    flat,
    ignore_float_warnings,
    orient,
    orient_one,
    require_valid,
)
from app.maths.score.distribution import log_density, tails, tails_of_one
from app.maths.score.hdi import safe_shortest_ends, shortest_ends, shortest_of_one

CONTEXT_MASS = 0.95  # of the interval whose width is W2


@dataclass(frozen=True, slots=True)
class Exceedance:
    below: Array  # P(NS <= t)
    above: Array  # P(NS > t); each keeps its digits in its own tail


def expected_score(y: Values, moments: Moments) -> Array:
    """E[NS] = (y - m1) e^{-m2 + v2/2}."""
    expected = np.asarray((y - moments.m1) * np.exp(0.5 * moments.v2 - moments.m2))
    require_valid(bool(np.isfinite(expected.sum())))
    return expected


def exceedance(t: Values, y: Values, moments: Moments, measurement_variance: Values = 0.0) -> Exceedance:
    """Both sides of t from one integral."""
    asked = np.broadcast(t, y, moments.m1, moments.v1, moments.m2, moments.v2, measurement_variance)
    with ignore_float_warnings():
        if asked.size <= SCALAR_MAX_PEOPLE:
            sides = np.array([both_sides_of_one(float(t), *orient_one(*map(float, one))) for t, *one in asked])
            sides = sides.reshape(-1, 2).T
        else:
            sides = both_sides(flat(np.asarray(t), asked.shape), *orient(y, moments, measurement_variance, asked.shape))
    return Exceedance(sides[0].reshape(asked.shape), sides[1].reshape(asked.shape))


def both_sides_of_one(t: float, score: Oriented, sign: float) -> tuple[float, float]:
    """P(NS <= t) and P(NS > t) of one person."""
    if score.is_point:
        return (1.0, 0.0) if sign * score.a <= t else (0.0, 1.0)
    below, above = tails_of_one(sign * t, score)
    return (below, above) if sign > 0 else (above, below)


def both_sides(t: Array, score: Oriented, sign: Array) -> Array:
    """P(NS <= t) and P(NS > t) [2, N] for t [N]."""
    tail = tails(sign * t, score)
    sides = np.where(sign > 0, (tail.below, tail.above), (tail.above, tail.below))
    reached = sign * score.a <= t
    return np.where(score.is_point, (reached, ~reached), sides)


def cdf(t: Values, y: Values, moments: Moments, measurement_variance: Values = 0.0) -> Array:
    """P(NS <= t)."""
    return exceedance(t, y, moments, measurement_variance).below


def sf(t: Values, y: Values, moments: Moments, measurement_variance: Values = 0.0) -> Array:
    """P(NS > t)."""
    return exceedance(t, y, moments, measurement_variance).above


def pdf(t: Values, y: Values, moments: Moments, measurement_variance: Values = 0.0) -> Array:
    """The density of NS at t; infinite or 0 where NS is certain."""
    shape = np.broadcast(t, y, moments.m1, measurement_variance).shape
    with ignore_float_warnings():
        score, sign = orient(y, moments, measurement_variance, shape)
        t = sign * flat(np.asarray(t), shape)
        density = np.exp(log_density(t, score))
    return np.where(score.is_point, np.where(t == score.a, np.inf, 0.0), density).reshape(shape)


def hdi(y: Values, moments: Moments, mass: float = 0.95, measurement_variance: Values = 0.0) -> Intervals:
    """The shortest intervals that hold the mass, each verified to 2e-9 of its width."""
    return _intervals(shortest_ends, y, moments, mass, measurement_variance)


def safe_hdi(y: Values, moments: Moments, mass: float = 0.95, measurement_variance: Values = 0.0) -> Intervals:
    """The same by a nested search that shares no starting point, derivative or stopping rule with hdi."""
    return _intervals(safe_shortest_ends, y, moments, mass, measurement_variance)


def context_width(moments: Moments) -> Array:
    """W2: the width of the 95% HDI at the diameter m1 + 2 exp(m2), which the context alone decides."""
    return np.asarray(hdi(_context_diameter(moments), moments, CONTEXT_MASS).width)


def _context_diameter(moments: Moments) -> Array:
    return np.asarray(moments.m1 + 2.0 * np.exp(moments.m2))


def _intervals(
    find: Callable[[Oriented, float], Array], y: Values, moments: Moments, mass: float, measurement_variance: Values
) -> Intervals:
    if not 0.0 < mass < 1.0:
        raise ValueError("The mass of an interval lies between 0 and 1.")
    asked = np.broadcast(y, moments.m1, moments.v1, moments.m2, moments.v2, measurement_variance)
    with ignore_float_warnings():
        if asked.size <= SCALAR_MAX_PEOPLE and find is shortest_ends:
            ends = np.array([_ends_of_one(mass, *map(float, one)) for one in asked]).reshape(-1, 2).T
        else:
            score, sign = orient(y, moments, measurement_variance, asked.shape)
            ends = np.where(score.is_point, score.a, find(score, mass))
            ends = np.where(sign > 0, ends, -ends[::-1])
    return Intervals(ends[0].reshape(asked.shape), ends[1].reshape(asked.shape))


def _ends_of_one(mass: float, *person: float) -> tuple[float, float]:
    score, sign = orient_one(*person)
    low, high = (score.a, score.a) if score.is_point else shortest_of_one(score, mass)
    return (low, high) if sign > 0 else (-high, -low)
