"""Every number about N measurements: prediction, score, reference, context and comparators in one go.

As columns for many people; as rows for the answers. A few measurements are worked one by one, with floats.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.domain.context import covariates
from app.domain.patient import Patient
from app.inference.executor import LoadedModel
from app.maths.moments import Array, Intervals, Moments
from app.maths.score.canonical_form import SCALAR_MAX_PEOPLE, centres, ignore_float_warnings, spreads
from app.maths.score.interval_table import MASS, MeasurementIntervals, find_intervals
from app.maths.score.normalcy import expected_score, standardised_exceedance
from app.maths.score.predictive import standardised_cdf
from app.maths.score.score_one import Location, ScoreRow, score_one

FindIntervals = Callable[[Array, Moments, tuple[float, ...], float, Array | None], MeasurementIntervals]


@dataclass(frozen=True, slots=True)
class Locations:
    """Where NS lies: an interval, both sides of every threshold, and the two tails that decide the position."""

    hdi: Intervals  # [N]
    above: Array  # [T, N] P(NS > t)
    below: Array  # [T, N] P(NS < t)
    above_2: Array  # [N] P(NS > 2)
    below_minus_2: Array  # [N] P(NS < -2)

    def rows(self) -> list[Location]:
        columns = (self.hdi.low, self.hdi.high, self.above.T, self.below.T, self.above_2, self.below_minus_2)
        return list(map(Location, *(column.tolist() for column in columns)))


@dataclass(frozen=True, slots=True)
class ScoreNumbers:
    """What the moments and the diameters give."""

    expected_ns: Array  # [N]
    locations: Locations
    without_error: Locations | None  # of the error-free diameter; None if no measurement states its error
    context_width: Array  # [N] W2
    interval_mm: Intervals  # [N]
    percentile: Array  # [N]
    diameter_at_threshold_mm: Array  # [3, T, N] in the order of tables.PROBABILITIES

    def rows(self) -> list[ScoreRow]:
        return list(
            map(
                ScoreRow,
                self.expected_ns.tolist(),
                self.locations.rows(),
                self.without_error.rows() if self.without_error else [None] * self.expected_ns.size,
                self.context_width.tolist(),
                self.interval_mm.low.tolist(),
                self.interval_mm.high.tolist(),
                self.percentile.tolist(),
                self.diameter_at_threshold_mm.T.tolist(),
            )
        )


@dataclass(frozen=True, slots=True)
class Numbers:
    moments: Moments
    score: ScoreNumbers
    linear_z: Array  # [N]
    altman_z: Array  # [N] to be read only where it applies
    altman_applies: NDArray[np.bool_]  # [N]


class NumberRow(NamedTuple):
    """All numbers of one measurement."""

    score: ScoreRow
    m1: float
    v1: float
    m2: float
    v2: float
    linear_z: float
    altman_z: float | None  # None where its spread cannot be believed


def numbers(
    model: LoadedModel,
    patients: Sequence[Patient],
    diameters: Array,
    thresholds: tuple[float, ...] = (2.0,),
    mass: float = 0.95,
    measurement_sd_mm: Array | None = None,
    find: FindIntervals = find_intervals,
) -> Numbers:
    x = covariates(patients, model.card.age_transform)
    moments = model.executor.predict(x)
    variance = None if measurement_sd_mm is None else measurement_sd_mm * measurement_sd_mm
    found = score_numbers(diameters, moments, thresholds, mass, variance, find)
    linear = model.linear
    with ignore_float_warnings():
        altman_z = linear.altman_z(x, diameters)
    return Numbers(moments, found, linear.linear_z(x, diameters), altman_z, linear.altman_applies(x))


def number_rows(
    model: LoadedModel,
    patients: Sequence[Patient],
    diameters: Sequence[float],
    thresholds: tuple[float, ...],
    mass: float,
    measurement_sd_mm: Sequence[float],
    find: FindIntervals = find_intervals,
) -> list[NumberRow]:
    """One row per measurement, in order."""
    x, y = covariates(patients, model.card.age_transform), np.array(diameters)
    moments = model.executor.predict(x)
    columns = moments.m1.tolist(), moments.v1.tolist(), moments.m2.tolist(), moments.v2.tolist()
    each = list(zip(*columns, strict=True))
    scores = None
    if len(diameters) <= SCALAR_MAX_PEOPLE and mass == MASS and find is find_intervals:
        scores = _one_by_one(diameters, each, thresholds, measurement_sd_mm)
    if scores is None:
        variance = np.square(measurement_sd_mm) if any(measurement_sd_mm) else None
        scores = score_numbers(y, moments, thresholds, mass, variance, find).rows()
    rows = zip(scores, each, model.linear.z_scores(x, diameters), strict=True)
    return [NumberRow(score, *latent, linear_z, altman_z) for score, latent, (linear_z, altman_z) in rows]


def _one_by_one(
    diameters: Sequence[float],
    moments: Sequence[tuple[float, float, float, float]],
    thresholds: tuple[float, ...],
    measurement_sd_mm: Sequence[float],
) -> list[ScoreRow] | None:
    """None if anybody is beyond the table of intervals."""
    scores = []
    with ignore_float_warnings():
        for y, (m1, v1, m2, v2), sd in zip(diameters, moments, measurement_sd_mm, strict=True):
            score = score_one(y, m1, v1, m2, v2, thresholds, sd * sd if sd > 0.0 else None)
            if score is None:
                return None
            scores.append(score)
    return scores


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
            without_error = _locations(intervals.without_error, thresholds, centre, noise, s)
        return ScoreNumbers(
            expected_ns=expected_score(y, moments),
            locations=_locations(intervals.hdi, thresholds, centre, b, s),
            without_error=without_error,
            context_width=intervals.context_width,
            interval_mm=intervals.interval_mm,
            percentile=100.0 * np.minimum(standardised_cdf(centre, b, s), 1.0),  # quadrature may end 4e-16 beyond
            diameter_at_threshold_mm=intervals.diameter_at_threshold_mm,
        )


def _locations(hdi: Intervals, thresholds: tuple[float, ...], centre: Array, b: Array, s: Array) -> Locations:
    sides, above_2, below_minus_2 = standardised_exceedance(thresholds, centre, b, s)
    return Locations(hdi, sides.above, sides.below, above_2, below_minus_2)
