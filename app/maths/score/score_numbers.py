"""All that follows from diameters and moments: N people together. One person with floats: `score_one`."""

from collections.abc import Callable
from typing import NamedTuple

from app.maths.moments import Array, Intervals, Moments, Real
from app.maths.score.canonical_form import centres, ignore_float_warnings, spreads
from app.maths.score.interval_table import MeasurementIntervals, find_intervals
from app.maths.score.normalcy import expected_score
from app.maths.score.probabilities import probabilities

FindIntervals = Callable[[Array, Moments, tuple[float, ...], float, Array | None], MeasurementIntervals]


class Locations(NamedTuple):
    """Where NS lies: an interval, both sides of every threshold, and the two tails that decide the position."""

    hdi: Intervals  # [N]
    above: Real  # [T, N] P(NS > t)
    below: Real  # [T, N] P(NS < t)
    above_2: Real  # [N] P(NS > 2)
    below_minus_2: Real  # [N] P(NS < -2)


class ScoreNumbers(NamedTuple):
    """What the moments and the diameters give: arrays for N people, floats and lists of [T] floats for one."""

    expected_ns: Real  # [N]
    locations: Locations
    without_error: Locations | None  # of the error-free diameter; None if no measurement states its error
    context_width: Real  # [N] W2
    interval_mm: Intervals  # [N]
    percentile: Real  # [N]
    diameter_at_threshold_mm: Real  # [3, T, N] in the order of interval_table.PROBABILITIES


def score_numbers(
    y: Array,
    moments: Moments,
    thresholds: tuple[float, ...] = (2.0,),
    mass: float = 0.95,
    measurement_variance: Array | None = None,
    find: FindIntervals = find_intervals,
) -> ScoreNumbers:
    """`find` is the way to intervals and quantiles: from tables where they reach, or solved for each person."""
    with ignore_float_warnings():
        centre, (b, s) = centres(y, moments, y.shape), spreads(moments, 0.0, y.shape)
        intervals = find(y, moments, thresholds, mass, measurement_variance)
        without_error = None
        if measurement_variance is not None and intervals.without_error is not None:
            noise, _ = spreads(moments, measurement_variance, y.shape)
            *error_free, _ = probabilities(thresholds, centre, noise, s)
            without_error = Locations(intervals.without_error, *error_free)
        *measured, percentile = probabilities(thresholds, centre, b, s)
        return ScoreNumbers(
            expected_ns=expected_score(y, moments),
            locations=Locations(intervals.hdi, *measured),
            without_error=without_error,
            context_width=intervals.context_width,
            interval_mm=intervals.interval_mm,
            percentile=percentile,
            diameter_at_threshold_mm=intervals.diameter_at_threshold_mm,
        )
