"""Every number about N measurements: prediction, score, reference, context and comparators in one go."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.domain.patient import covariate_columns, transform_age
from app.domain.query import MeasurementColumns, OneMeasurement
from app.inference.executor import LoadedModel
from app.maths.moments import Real
from app.maths.score.interval_table import find_intervals
from app.maths.score.score_numbers import FindIntervals, ScoreNumbers, score_numbers
from app.maths.score.score_one import score_one


class MeasurementNumbers(NamedTuple):
    """At full precision: arrays [N], or floats for one measurement."""

    score: ScoreNumbers
    expected_diameter_mm: Real
    expected_diameter_sd_mm: Real
    aleatoric_sd_mm: Real
    aleatoric_sd_log_se: Real
    linear_z: Real
    altman_z: Real  # to be read only where it applies
    altman_applies: Real


def compute_numbers(
    model: LoadedModel, measurements: MeasurementColumns, find: FindIntervals = find_intervals
) -> MeasurementNumbers:
    """`find` is the way to intervals and quantiles; `solve_intervals` does without the table."""
    body = measurements.age_years, measurements.male, measurements.height_cm, measurements.weight_kg
    x, y = covariate_columns(*body, age=model.card.age_transform), measurements.diameter_mm
    moments, options = model.executor.predict(x), (measurements.thresholds, measurements.hdi_probability)
    score = score_numbers(y, moments, *options, measurements.error_variance, find)
    spreads = np.sqrt(moments.v1), np.exp(moments.m2), np.sqrt(moments.v2)
    return MeasurementNumbers(score, moments.m1, *spreads, *model.linear.z_scores(x, y))


def compute_numbers_of_each(
    model: LoadedModel, measurements: Sequence[OneMeasurement], thresholds: tuple[float, ...]
) -> list[MeasurementNumbers] | None:
    """The same with floats and the 95% HDI, for a few measurements; None if one is beyond the table of intervals."""
    transform = transform_age(model.card.age_transform)
    x = [(transform(one.age_years), one.male, one.height_cm, one.weight_kg) for one in measurements]
    moments = model.executor.predict(np.array(x, dtype=np.float64))
    with_error = any(one.states_error for one in measurements)
    latent = zip(*(column.tolist() for column in (moments.m1, moments.v1, moments.m2, moments.v2)), strict=True)
    found = []
    for one, row, (m1, v1, m2, v2) in zip(measurements, x, latent, strict=True):
        score = score_one(one.diameter_mm, m1, v1, m2, v2, thresholds, one.error_variance if with_error else None)
        if score is None:
            return None
        spreads = math.sqrt(v1), math.exp(m2), math.sqrt(v2)
        found.append(MeasurementNumbers(score, m1, *spreads, *model.linear.z_scores_of_one(row, one.diameter_mm)))
    return found
