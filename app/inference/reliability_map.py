"""How sure a model is over age and body surface area: W2, or the width of the score's interval at one diameter."""

import numpy as np

from app.domain.patient import Patient, Sex, haycock_bsa_m2
from app.domain.query import Convention
from app.formats.rounding import significant
from app.inference.executor import LoadedModel
from app.inference.median_bmi import median_bmi
from app.inference.reference_curves import context_numbers, reliabilities, rounded_numbers
from app.maths.moments import Array
from app.schemas.charts import MapGrid

AGES, SIZES = 40, 30  # columns and rows of the map
NOT_STATED = Convention()


def reliability_map(model: LoadedModel, sex: Sex, diameter_mm: float | None = None) -> MapGrid:
    """`diameter_mm` None: W2, which depends on the context alone."""
    ranges, median = model.card.ranges, median_bmi(model.card, sex)
    ages = np.linspace(ranges.age_years.low, ranges.age_years.high, AGES)
    height, weight = ranges.height_cm[sex.value], ranges.weight_kg[sex.value]
    sizes = np.linspace(haycock_bsa_m2(height.low, weight.low), haycock_bsa_m2(height.high, weight.high), SIZES)
    bmi = median.at(ages)
    heights = height_of(sizes[:, None], bmi)  # [SIZES, AGES]
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
        width=tuple(map(rounded_numbers, width.reshape(SIZES, AGES))),
        verdict=tuple(tuple(row) for row in np.array(judged, dtype=object).reshape(SIZES, AGES)),
    )


def height_of(bsa_m2: Array, bmi: Array) -> Array:
    """The height in cm at which a body mass index gives a body surface area: Haycock's formula, inverted."""
    return np.asarray((bsa_m2 / (0.024265 * (bmi / 1e4) ** 0.5378)) ** (1.0 / (0.3964 + 2.0 * 0.5378)))
