"""All numbers of one diameter with floats: for a lone measurement NumPy's overhead would be most of the time.

The formulas are those of `tables.find_intervals`, `normalcy` and `predictive`, and so are the digits.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from app.maths.score.canonical_form import Oriented, orient_one, require_valid
from app.maths.score.distribution import tails_of_one
from app.maths.score.interval_table import (
    AT_HALF_WIDTH,
    HALF_WIDTH,
    HIGH,
    LOW,
    LOWER,
    MEDIAN,
    UPPER,
    interval_table,
)
from app.maths.score.normalcy import CERTAIN_RHO, POSITION_LIMITS
from app.maths.score.predictive import WIDE_REACH, wide_nodes
from app.maths.score.quadrature import grid, size_for


class Location(NamedTuple):
    """Where NS lies: an interval, both sides of every threshold, and the two tails that decide the position."""

    low: float
    high: float
    above: Sequence[float]  # [T] P(NS > t)
    below: Sequence[float]  # [T] P(NS < t)
    above_2: float
    below_minus_2: float


class ScoreRow(NamedTuple):
    """What the moments and a diameter give."""

    expected_ns: float
    location: Location
    without_error: Location | None  # of the error-free diameter
    context_width: float  # W2
    interval_low_mm: float
    interval_high_mm: float
    percentile: float
    diameter_at_threshold_mm: Sequence[Sequence[float]]  # [T][3] median, 2.5%, 97.5%


def score_one(
    y: float, m1: float, v1: float, m2: float, v2: float, thresholds: tuple[float, ...], variance: float | None
) -> ScoreRow | None:
    """With the 95% HDI; None outside the table of intervals. `variance`: of the measurement error, if any."""
    score, sign = orient_one(y, m1, v1, m2, v2, 0.0)
    noisy = orient_one(y, m1, v1, m2, v2, variance)[0] if variance is not None else None
    a, b, s = score.a, score.b, score.s
    distances = [a, AT_HALF_WIDTH, *(abs(t) for t in thresholds if abs(t) != AT_HALF_WIDTH)]
    rhos = [distance / b for distance in distances]
    read = interval_table().of_one([*rhos, noisy.rho] if noisy else rhos, s)
    if read is None:
        return None
    spread = math.exp(m2)
    context = read[1]
    half_width = spread * math.hypot(1.0, b) * context[HALF_WIDTH]
    expected = (y - m1) * math.exp(0.5 * v2 - m2)
    require_valid(math.isfinite(expected))
    return ScoreRow(
        expected,
        _location(read[0], score, sign, thresholds),
        _location(read[-1], noisy, sign, thresholds) if noisy else None,
        math.hypot(b, s * AT_HALF_WIDTH) * (context[HIGH] - context[LOW]),
        m1 - half_width,
        m1 + half_width,
        100.0 * min(_predictive_cdf(sign * a, b, s), 1.0),
        _diameters(read, score, thresholds, m1, spread),
    )


def _location(read: Sequence[float], score: Oriented, sign: float, thresholds: tuple[float, ...]) -> Location:
    d = math.hypot(score.b, score.s * score.a)
    low, high = score.a + d * read[LOW], score.a + d * read[HIGH]
    sides = {t: _sides(t, score, sign) for t in thresholds}
    for limit in POSITION_LIMITS:
        if limit not in sides:
            empty = score.rho > CERTAIN_RHO and sign * limit < 0.0
            sides[limit] = (0.0, 0.0) if empty else _sides(limit, score, sign)
    return Location(
        *((low, high) if sign > 0 else (-high, -low)),
        [sides[t][1] for t in thresholds],
        [sides[t][0] for t in thresholds],
        sides[2.0][1],
        sides[-2.0][0],
    )


def _sides(t: float, score: Oriented, sign: float) -> tuple[float, float]:
    below, above = tails_of_one(sign * t, score)
    return (below, above) if sign > 0 else (above, below)


def _predictive_cdf(centre: float, b: float, s: float) -> float:
    nodes = grid(size_for(wide_nodes(s)), WIDE_REACH)
    x = np.exp(s * nodes.z)
    np.hypot(x, b, out=x)
    np.divide(centre, x, out=x)
    return float(ndtr(x, out=x) @ nodes.weight)


def _diameters(
    read: Sequence[Sequence[float]], score: Oriented, thresholds: tuple[float, ...], m1: float, spread: float
) -> list[tuple[float, float, float]]:
    found, others = [], 2
    for t in thresholds:
        size = abs(t)
        row = read[1]
        if size != AT_HALF_WIDTH:
            row, others = read[others], others + 1
        d = math.hypot(score.b, score.s * size)
        median, lower, upper = (size + d * row[column] for column in (MEDIAN, LOWER, UPPER))
        w = (median, lower, upper) if t >= 0.0 else (-median, -upper, -lower)
        found.append((m1 + spread * w[0], m1 + spread * w[1], m1 + spread * w[2]))
    return found
