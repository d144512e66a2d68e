"""Numbers that are refused, and the slip that would explain them: a hint for the caller, never a correction.

A slip explains a body when undoing it brings height, weight and body mass index into their allowed ranges.
Where slips lead to an ordinary body, only the one that leads to the most usual is mentioned; an exchange only where no
other unit leads there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from app.domain.limits import BMI, DIAMETER, DIAMETER_FROM_SCHOOL_AGE, HEIGHT, WEIGHT, Limit
from app.domain.patient import bmi_kg_m2, unusualness
from app.formats.fields import Fields, span

CM_PER_INCH = 2.54
CM_PER_FOOT = 30.48
KG_PER_POUND = 0.45359237

# Nearly everybody; only to choose between slips that all lead into the allowed ranges (69 cm and 84 kg: inches,
# rather than pounds with a body mass index of 80).
ORDINARY_BMI_KG_M2 = (13.0, 50.0)
ORDINARY_HEIGHT_CM = 200.0


@dataclass(frozen=True, slots=True)
class Slip:
    code: str
    field: str  # where to look first
    query: str
    undo: Callable[[float, float], tuple[float, float]]  # height and weight as they were meant


INCHES_AND_POUNDS = Slip(
    "given_in_inches_and_pounds",
    HEIGHT.field,
    "Were height and weight given in inches and pounds?",
    lambda h, w: (CM_PER_INCH * h, KG_PER_POUND * w),
)
FEET = Slip("given_in_feet", HEIGHT.field, "Was the height given in feet?", lambda h, w: (CM_PER_FOOT * h, w))
FEET_AND_POUNDS = Slip(
    "given_in_feet_and_pounds",
    HEIGHT.field,
    "Were height and weight given in feet and pounds?",
    lambda h, w: (CM_PER_FOOT * h, KG_PER_POUND * w),
)
EXCHANGED = Slip("height_weight_exchanged", HEIGHT.field, "Were height and weight exchanged?", lambda h, w: (w, h))
SLIPS = (
    Slip("given_in_m", HEIGHT.field, "Was the height given in m?", lambda h, w: (100.0 * h, w)),
    Slip("given_in_inches", HEIGHT.field, "Was the height given in inches?", lambda h, w: (CM_PER_INCH * h, w)),
    FEET,
    Slip("given_in_pounds", WEIGHT.field, "Was the weight given in pounds?", lambda h, w: (h, KG_PER_POUND * w)),
    INCHES_AND_POUNDS,
    FEET_AND_POUNDS,
    EXCHANGED,
)


def read_body(fields: Fields) -> tuple[float, float]:
    """Height and weight, each in its range and fitting each other."""
    height, weight = fields.real(HEIGHT), fields.real(WEIGHT)
    if HEIGHT.holds(height) and WEIGHT.holds(weight) and BMI.holds(bmi_kg_m2(height, weight)):
        return height, weight
    slips = explanations(height, weight)
    outside = [limit for limit, value in ((HEIGHT, height), (WEIGHT, weight)) if not _inside(limit, value)]
    for limit in outside:
        rule = f"{fields.at(limit.field)} must be a number {span(limit)}."
        _refuse(fields, "out_of_range", limit.field, rule, slips)
    if not outside and not math.isnan(height + weight):
        rule = f"{fields.at(HEIGHT.field)} and {fields.at(WEIGHT.field)} must give a body mass index {span(BMI)}."
        field = slips[0].field if len(slips) == 1 else WEIGHT.field
        _refuse(fields, "implausible_bmi", field, rule, slips)
    return height, weight


def read_diameter(fields: Fields, age_years: float) -> float:
    """In the range of the age; where the age could not be read, in the wider one."""
    diameter = fields.real(DIAMETER)
    from_age = DIAMETER_FROM_SCHOOL_AGE.from_age_years
    limit = DIAMETER_FROM_SCHOOL_AGE if age_years >= from_age else DIAMETER
    if not limit.holds(diameter) and not math.isnan(diameter):
        rule = f"{fields.at(limit.field)} must be a number {span(limit)}{_age_clause(limit)}."
        if 0.0 < diameter < limit.low:
            fields.refuse("given_in_cm", limit.field, f"{rule} Was it given in cm?")
        else:
            fields.refuse("out_of_range", limit.field, rule)
    return diameter


def explanations(height_cm: float, weight_kg: float) -> tuple[Slip, ...]:
    """The slips that explain a refused body, the likely ones only; NaN for what is not known."""
    bodies = [(slip, *slip.undo(height_cm, weight_kg)) for slip in SLIPS if _is_known(slip, height_cm, weight_kg)]
    possible = [(slip, h, w) for slip, h, w in bodies if _fits(h, w)]
    ordinary = [(slip, h, w) for slip, h, w in possible if _is_ordinary(h, w)]
    likely = [min(ordinary, key=lambda body: (body[0] is EXCHANGED, unusualness(*body[1:])))] if ordinary else possible
    return tuple(slip for slip, _, _ in likely)


def _refuse(fields: Fields, code: str, field: str, rule: str, slips: tuple[Slip, ...]) -> None:
    """With every hint in the message; a slip that is the only explanation gives its code."""
    fields.refuse(slips[0].code if len(slips) == 1 else code, field, " ".join([rule, *(s.query for s in slips)]))


def _is_known(slip: Slip, height_cm: float, weight_kg: float) -> bool:
    """Whether the slip can be judged: one that touches both quantities needs both, and feet might be metres."""
    return not (slip in (FEET, INCHES_AND_POUNDS, FEET_AND_POUNDS, EXCHANGED) and math.isnan(height_cm + weight_kg))


def _fits(height_cm: float, weight_kg: float) -> bool:
    sizes_fit = _inside(HEIGHT, height_cm) and _inside(WEIGHT, weight_kg)
    return sizes_fit and _inside(BMI, bmi_kg_m2(height_cm, weight_kg))


def _is_ordinary(height_cm: float, weight_kg: float) -> bool:
    low, high = ORDINARY_BMI_KG_M2
    return height_cm <= ORDINARY_HEIGHT_CM and low <= bmi_kg_m2(height_cm, weight_kg) <= high


def _inside(limit: Limit, value: float) -> bool:
    """Nothing speaks against what is not known."""
    return math.isnan(value) or limit.holds(value)


def _age_clause(limit: Limit) -> str:
    return f" from age {limit.from_age_years:g} on" if limit.from_age_years else ""
