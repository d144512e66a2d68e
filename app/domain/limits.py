"""Ranges of body sizes and diameters: what a request may hold, and where an answer carries an advisory.

A unit mistake may explain a value outside them: a hint for the caller, never a correction. It explains a body when
undoing it brings height, weight and body mass index into their allowed ranges. Where mistakes lead to an ordinary body,
only the one that leads to the most usual is mentioned, and an exchange of height and weight only where no other unit
leads there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from app.domain.patient import bmi_kg_m2, unusualness

ADULT_AGE_YEARS = 18.0
SCHOOL_AGE_YEARS = 5.0  # from here on a root below 10 mm is a unit mistake, not a small child


@dataclass(frozen=True, slots=True)
class Limit:
    """`low <= value <= high`, or `value < high` where `high_excluded`, for people of at least `from_age_years`.

    Outside, the request is rejected; where `advisory` names a code, it is answered with that advisory.
    """

    field: str
    unit: str
    low: float
    high: float
    default: float | None = None
    from_age_years: float = 0.0
    high_excluded: bool = False
    advisory: str | None = None

    def holds(self, value: float) -> bool:
        return self.low <= value and (value < self.high if self.high_excluded else value <= self.high)


AGE = Limit("age_years", "years", 0.0, 120.0)
HEIGHT = Limit("height_cm", "cm", 40.0, 250.0)
WEIGHT = Limit("weight_kg", "kg", 1.5, 350.0)
BMI = Limit("bmi_kg_m2", "kg/m²", 8.0, 100.0)
DIAMETER = Limit("diameter_mm", "mm", 3.0, 120.0)
DIAMETER_FROM_SCHOOL_AGE = Limit("diameter_mm", "mm", 10.0, 120.0, from_age_years=SCHOOL_AGE_YEARS)

LARGE_DIAMETER = Limit(
    "diameter_mm", "mm", 3.0, 40.0, from_age_years=ADULT_AGE_YEARS, high_excluded=True, advisory="absolute_diameter"
)
HIGH_BMI = Limit("bmi_kg_m2", "kg/m²", 8.0, 50.0, from_age_years=ADULT_AGE_YEARS, advisory="bmi_high")
FAR_OUT = Limit("expected_ns", "NS", -6.0, 6.0, advisory="far_out")
ADVISORY = (LARGE_DIAMETER, HIGH_BMI, FAR_OUT)


def diameter_limit(age_years: float) -> Limit:
    """The allowed diameters at this age; the wider range where the age is not known (NaN)."""
    return DIAMETER_FROM_SCHOOL_AGE if age_years >= DIAMETER_FROM_SCHOOL_AGE.from_age_years else DIAMETER


CM_PER_INCH = 2.54
CM_PER_FOOT = 30.48
KG_PER_POUND = 0.45359237

# Nearly everybody; only to choose between mistakes that all lead into the allowed ranges (69 cm and 84 kg: inches,
# rather than pounds with a body mass index of 80).
ORDINARY_BMI_KG_M2 = (13.0, 50.0)
ORDINARY_HEIGHT_CM = 200.0

GIVEN_IN_CM = "given_in_cm"
MISPLACED_POINT = "a decimal point in the wrong place"


@dataclass(frozen=True, slots=True)
class BodyMistake:
    code: str
    field: str  # to check first
    words: str
    undo: Callable[[float, float], tuple[float, float]]  # height and weight as they were meant
    needs_both: bool = False  # cannot be judged from one of the two alone

    @property
    def question(self) -> str:
        return f"{'Were' if self.words.startswith('height and') else 'Was the'} {self.words}?"


EXCHANGED = BodyMistake(
    "height_weight_exchanged", HEIGHT.field, "height and weight exchanged", lambda h, w: (w, h), True
)
BODY_MISTAKES = (
    BodyMistake("given_in_m", HEIGHT.field, "height given in m", lambda h, w: (100.0 * h, w)),
    BodyMistake("given_in_inches", HEIGHT.field, "height given in inches", lambda h, w: (CM_PER_INCH * h, w)),
    # A height in feet might be one in metres unless the weight decides.
    BodyMistake("given_in_feet", HEIGHT.field, "height given in feet", lambda h, w: (CM_PER_FOOT * h, w), True),
    BodyMistake("given_in_pounds", WEIGHT.field, "weight given in pounds", lambda h, w: (h, KG_PER_POUND * w)),
    BodyMistake(
        "given_in_inches_and_pounds",
        HEIGHT.field,
        "height and weight given in inches and pounds",
        lambda h, w: (CM_PER_INCH * h, KG_PER_POUND * w),
        True,
    ),
    BodyMistake(
        "given_in_feet_and_pounds",
        HEIGHT.field,
        "height and weight given in feet and pounds",
        lambda h, w: (CM_PER_FOOT * h, KG_PER_POUND * w),
        True,
    ),
    EXCHANGED,
)

# field -> (factor, low, high, words): explains a value if factor·value falls between low and high. The first one wins.
VALUE_MISTAKES = {
    AGE.field: ((1.0 / 12.0, 0.0, 120.0, "given in months"),),
    HEIGHT.field: (
        (100.0, 40.0, 250.0, "given in m"),
        (10.0, 40.0, 250.0, MISPLACED_POINT),
        (0.1, 40.0, 250.0, "given in mm"),
    ),
    WEIGHT.field: ((0.1, 20.0, 200.0, MISPLACED_POINT), (0.001, 1.5, 350.0, "given in g")),
    DIAMETER.field: ((10.0, 10.0, 80.0, "given in cm"), (0.1, 10.0, 80.0, MISPLACED_POINT)),
}


def body_mistakes(height_cm: float, weight_kg: float) -> tuple[BodyMistake, ...]:
    """The mistakes that explain a rejected body, the likely ones only; NaN for what is not known."""
    known = not math.isnan(height_cm + weight_kg)
    bodies = [(one, *one.undo(height_cm, weight_kg)) for one in BODY_MISTAKES if known or not one.needs_both]
    possible = [(one, h, w) for one, h, w in bodies if _is_allowed(h, w)]
    ordinary = [(one, h, w) for one, h, w in possible if _is_ordinary(h, w)]
    likely = [min(ordinary, key=lambda body: (body[0] is EXCHANGED, unusualness(*body[1:])))] if ordinary else possible
    return tuple(one for one, _, _ in likely)


def value_mistake(field: str, value: float) -> str:
    """What one implausible value of a table may have meant; empty if nothing fits."""
    return next((words for factor, low, high, words in VALUE_MISTAKES[field] if low <= factor * value <= high), "")


def is_inside(limit: Limit, value: float) -> bool:
    """Whether the limit holds, or the value is not known (NaN)."""
    return math.isnan(value) or limit.holds(value)


def _is_allowed(height_cm: float, weight_kg: float) -> bool:
    sizes = is_inside(HEIGHT, height_cm) and is_inside(WEIGHT, weight_kg)
    return sizes and is_inside(BMI, bmi_kg_m2(height_cm, weight_kg))


def _is_ordinary(height_cm: float, weight_kg: float) -> bool:
    low, high = ORDINARY_BMI_KG_M2
    return height_cm <= ORDINARY_HEIGHT_CM and low <= bmi_kg_m2(height_cm, weight_kg) <= high
