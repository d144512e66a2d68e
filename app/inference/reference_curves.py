"""The numbers of the pictures: what a model expects over age at one body size, the density of one score, and how sure
the model is over age and body surface area (W2, or the width of the score's interval at one diameter)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.domain.patient import Patient, Sex, covariates, haycock_bsa_m2
from app.domain.query import NOT_STATED, Convention, MeasurementColumns, ScoreQuery
from app.domain.score import Finding
from app.errors import UnverifiedResult
from app.formats.rounding import significant, significant_columns
from app.inference.executor import LoadedModel
from app.inference.median_bmi import median_bmi
from app.inference.reliability_rules import Assessment
from app.maths.moments import Array, Intervals, Moments
from app.maths.score import normalcy, predictive
from app.maths.score.interval_table import MASS, MeasurementIntervals, find_intervals
from app.schemas.answers import Hdi, Reference, Reliability
from app.schemas.charts import Curves, MapGrid, QuantileCurve, ScoreDensity, ThresholdCurve

AGES = 121  # of the curves, evenly over the training ages
MAP_AGES, MAP_SIZES = 40, 30  # columns and rows of the map
NARROW_MASS = 0.68  # of the inner band: from 16 to 84%
DENSITY_POINTS = 161
BEYOND = 0.6  # widths of the interval that the density is followed beyond its ends


def assess_context(
    model: LoadedModel, patient: Patient, convention: Convention
) -> tuple[Reliability, tuple[Finding, ...]]:
    """The verdict on a patient of whom no diameter is known, and the findings that led to it."""
    found = context_numbers(model, [patient], (2.0,))[1]
    [(reliability, assessment)] = _assessed(model, [patient], convention, found)
    return reliability, assessment.findings


def reference_curves(
    model: LoadedModel, patient: Patient, convention: Convention, thresholds: tuple[float, ...]
) -> Curves | None:
    """Over the training ages and the patient's own, where this body size is not `not_reliable`; None if nowhere."""
    trained = model.card.ranges.age_years
    ages = np.union1d(np.linspace(trained.low, trained.high, AGES), [patient.age_years])
    people = [replace(patient, age_years=significant(age)) for age in ages.tolist()]
    moments, found = context_numbers(model, people, thresholds)
    judged = reliabilities(model, people, convention, found)
    rows = np.array([each.verdict != "not_reliable" for each in judged])
    if not rows.any():
        return None
    narrow = predictive.interval(_rows(moments, rows), NARROW_MASS)
    wide = Intervals(found.interval_mm.low[rows], found.interval_mm.high[rows])
    bands = ((2.5, wide.low), (16.0, narrow.low), (84.0, narrow.high), (97.5, wide.high))
    shown = [(person, each) for person, each in zip(people, judged, strict=True) if each.verdict != "not_reliable"]
    return Curves(
        tuple(person.age_years for person, _ in shown),
        tuple(each.verdict for _, each in shown),
        tuple(significant(each.context_hdi_width) for _, each in shown),
        rounded_numbers(moments.m1[rows]),
        tuple(QuantileCurve(percent, rounded_numbers(mm)) for percent, mm in bands),
        tuple(
            ThresholdCurve(
                significant(t), *(rounded_numbers(quantile[k, rows]) for quantile in found.diameter_at_threshold_mm)
            )
            for k, t in enumerate(thresholds)
        ),
    )


def score_density(query: ScoreQuery, reference: Reference, hdi: Hdi, with_error: Hdi | None) -> ScoreDensity:
    """The exact density of NS around its interval; `reference` at full precision holds the moments."""
    moments = Moments(
        np.array([reference.expected_diameter_mm]),
        np.array([reference.expected_diameter_sd_mm**2]),
        np.log([reference.aleatoric_sd_mm]),
        np.array([reference.aleatoric_sd_log_se**2]),
    )
    outer = with_error or hdi
    low = min(hdi.low - BEYOND * hdi.width, outer.low - 0.3 * outer.width)
    high = max(hdi.high + BEYOND * hdi.width, outer.high + 0.3 * outer.width)
    ns = np.array([significant(at) for at in np.linspace(low, high, DENSITY_POINTS).tolist()])
    density = normalcy.pdf(ns, query.diameter_mm, moments)
    blurred = None
    if with_error is not None:
        blurred = rounded_numbers(normalcy.pdf(ns, query.diameter_mm, moments, query.error_variance))
    if not np.all(density >= 0.0):
        raise UnverifiedResult("A density is negative.")
    return ScoreDensity(tuple(ns.tolist()), rounded_numbers(density), blurred)


def context_numbers(
    model: LoadedModel, people: Sequence[Patient], thresholds: tuple[float, ...], diameter_mm: float | None = None
) -> tuple[Moments, MeasurementIntervals]:
    """All that the contexts give, in one vectorised pass; intervals of scores are those of the diameter, if given."""
    moments = model.executor.predict(covariates(people, model.card.age_transform))
    y = moments.m1 + 2.0 * np.exp(moments.m2) if diameter_mm is None else np.full_like(moments.m1, diameter_mm)
    return moments, find_intervals(y, moments, thresholds, MASS, None)


def reliabilities(
    model: LoadedModel, people: Sequence[Patient], convention: Convention, found: MeasurementIntervals
) -> list[Reliability]:
    return [reliability for reliability, _ in _assessed(model, people, convention, found)]


def _assessed(
    model: LoadedModel, people: Sequence[Patient], convention: Convention, found: MeasurementIntervals
) -> list[tuple[Reliability, Assessment]]:
    rules, w2 = model.reliability_rules, found.context_width
    measured = MeasurementColumns.of([ScoreQuery(person, 0.0, convention=convention) for person in people])
    percentile = rules.percentile(w2)
    numbers = zip(significant_columns(w2).tolist(), significant_columns(percentile).tolist(), strict=True)
    assessments = map(rules.assessment, rules.assess(measured, w2, percentile).tolist())
    return [(Reliability(one.verdict, *each, one.reasons), one) for one, each in zip(assessments, numbers, strict=True)]


def _rows(moments: Moments, rows: Array) -> Moments:
    return Moments(moments.m1[rows], moments.v1[rows], moments.m2[rows], moments.v2[rows])


def rounded_numbers(values: Array) -> tuple[float, ...]:
    return tuple([significant(value) for value in values.tolist()])


def reliability_map(model: LoadedModel, sex: Sex, diameter_mm: float | None = None) -> MapGrid:
    """`diameter_mm` None: W2, which depends on the context alone."""
    ranges, median = model.card.ranges, median_bmi(model.card, sex)
    ages = np.linspace(ranges.age_years.low, ranges.age_years.high, MAP_AGES)
    height, weight = ranges.height_cm[sex.value], ranges.weight_kg[sex.value]
    sizes = np.linspace(haycock_bsa_m2(height.low, weight.low), haycock_bsa_m2(height.high, weight.high), MAP_SIZES)
    bmi = median.at(ages)
    heights = height_of(sizes[:, None], bmi)  # [MAP_SIZES, MAP_AGES]
    weights = bmi * (heights / 100.0) ** 2
    people = [
        Patient(significant(age), sex, significant(h), significant(w))
        for row_heights, row_weights in zip(heights.tolist(), weights.tolist(), strict=True)
        for age, h, w in zip(ages.tolist(), row_heights, row_weights, strict=True)
    ]
    found = context_numbers(model, people, (2.0,), diameter_mm)[1]
    width = found.context_width if diameter_mm is None else found.hdi.width
    judged = [each.verdict for each in reliabilities(model, people, NOT_STATED, found)]
    return MapGrid(
        age_years=rounded_numbers(ages),
        bsa_m2=rounded_numbers(sizes),
        median_bmi_kg_m2=rounded_numbers(bmi),
        bmi_source=median.source,
        height_cm=tuple(map(rounded_numbers, heights)),
        weight_kg=tuple(map(rounded_numbers, weights)),
        width=tuple(map(rounded_numbers, width.reshape(MAP_SIZES, MAP_AGES))),
        verdict=tuple(tuple(row) for row in np.array(judged, dtype=object).reshape(MAP_SIZES, MAP_AGES)),
    )


def height_of(bsa_m2: Array, bmi: Array) -> Array:
    """The height in cm at which a body mass index gives a body surface area: Haycock's formula, inverted."""
    return np.asarray((bsa_m2 / (0.024265 * (bmi / 1e4) ** 0.5378)) ** (1.0 / (0.3964 + 2.0 * 0.5378)))
