"""All numbers of one diameter with floats: for a lone measurement NumPy's overhead would be most of the time.

The formulas are those of `interval_table.find_intervals` and `probabilities`, and so are the digits.
"""

import math
from collections.abc import Sequence

from app.maths.moments import Intervals
from app.maths.score.canonical_form import Oriented, orient_one, require_valid
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
from app.maths.score.probabilities import probabilities_of_one
from app.maths.score.score_numbers import Locations, ScoreNumbers


def score_one(
    y: float, m1: float, v1: float, m2: float, v2: float, thresholds: tuple[float, ...], variance: float | None
) -> ScoreNumbers | None:
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
    *measured, percentile = probabilities_of_one(thresholds, score, sign)
    without_error = None
    if noisy is not None:
        *error_free, _ = probabilities_of_one(thresholds, noisy, sign)
        without_error = Locations(_hdi(read[-1], noisy, sign), *error_free)
    return ScoreNumbers(
        expected,
        Locations(_hdi(read[0], score, sign), *measured),
        without_error,
        math.hypot(b, s * AT_HALF_WIDTH) * (context[HIGH] - context[LOW]),
        Intervals(m1 - half_width, m1 + half_width),
        percentile,
        _diameters(read, score, thresholds, m1, spread),
    )


def _hdi(read: Sequence[float], score: Oriented, sign: float) -> Intervals:
    d = math.hypot(score.b, score.s * score.a)
    low, high = score.a + d * read[LOW], score.a + d * read[HIGH]
    return Intervals(low, high) if sign > 0 else Intervals(-high, -low)


def _diameters(
    read: Sequence[Sequence[float]], score: Oriented, thresholds: tuple[float, ...], m1: float, spread: float
) -> tuple[list[float], list[float], list[float]]:
    found: tuple[list[float], list[float], list[float]] = ([], [], [])
    others = 2
    for t in thresholds:
        size = abs(t)
        row = read[1]
        if size != AT_HALF_WIDTH:
            row, others = read[others], others + 1
        d = math.hypot(score.b, score.s * size)
        median, lower, upper = (size + d * row[column] for column in (MEDIAN, LOWER, UPPER))
        w = (median, lower, upper) if t >= 0.0 else (-median, -upper, -lower)
        for column, value in zip(found, w, strict=True):
            column.append(m1 + spread * value)
    return found
