"""Advisories: what a reader should know beside the score. They never withhold anything."""

from functools import cache

import numpy as np

from app.domain.limits import ADULT_AGE_YEARS, FAR_OUT, HIGH_BMI, LARGE_DIAMETER
from app.domain.query import CONVENTIONS, Convention, MeasurementColumns, OneMeasurement
from app.inference.reliability_rules import Keys, listed
from app.maths.moments import Array
from app.maths.score.canonical_form import Mask
from app.schemas.answers import Advisory

INNER_EDGE = "Inner-edge measurements are about 3 mm smaller than leading-edge ones."
CONFIRM = "If the value is unexpected, check the measurement and its unit (mm)."
WIDEST_USUAL_MM = 80.0  # only the words change here, not whether there is an advisory

LARGE = Advisory(
    "absolute_diameter",
    "diameter_mm",
    "The diameter is 40 mm or more. Guidelines for adults also define dilatation of the aortic root and the ascending "
    "aorta by absolute size, from 40 mm; these definitions apply whatever the score is.",
)
OBESE = Advisory("bmi_high", "weight_kg", "The body mass index is above 50 kg/m². Was the weight given in pounds?")
FAR_ABOVE, FAR_AND_RARE, FAR_BELOW, FAR_AND_NOT_RELIABLE = (
    Advisory("far_out", "diameter_mm", f"{found} {CONFIRM}")
    for found in (
        "The score is above 6. Diameters of this size do occur.",
        "The score is above 6, and diameters of this size are rare.",
        "The score is below -6, and few aortas are this narrow.",
        "The score is beyond ±6.",  # of whom the model does not cover, nothing is known to be rare
    )
)
FAR = (None, FAR_ABOVE, FAR_AND_RARE, FAR_BELOW, FAR_AND_NOT_RELIABLE)

# Diameter, BMI and expected score: outside of these ends there is something to say, of the first two to adults only.
LOW = np.array([[-np.inf], [-np.inf], [FAR_OUT.low]])
HIGH = np.array([[np.nextafter(LARGE_DIAMETER.high, 0.0)], [HIGH_BMI.high], [FAR_OUT.high]])
ADULT = np.array([ADULT_AGE_YEARS])

# All advisories of a measurement as one number: is it large, is the BMI high, index into FAR, index into CONVENTIONS.
UNITS = np.array([1, 2])
FAR_UNIT = 4
CONVENTION_UNIT = FAR_UNIT * len(FAR)


def advise(measurements: MeasurementColumns, expected_ns: Array, unreliable: Mask, withheld: Mask) -> Keys:
    """The key of each measurement's `advisories`, [N]. Of a withheld score nothing is said that rests on it."""
    diameter = measurements.diameter_mm
    values = np.concatenate((diameter, measurements.bmi_kg_m2, expected_ns)).reshape(3, -1)
    outside = (values < LOW) | (values > HIGH)
    of_adults = outside[:2] & (measurements.age_years >= ADULT)
    keys: Keys = UNITS.dot(of_adults) + CONVENTION_UNIT * measurements.convention
    for row in np.flatnonzero(outside[2] & ~withheld).tolist():
        far_out = _far_out(diameter.item(row), expected_ns.item(row), unreliable=unreliable.item(row))
        keys[row] += FAR_UNIT * FAR.index(far_out)
    return keys


def advise_one(one: OneMeasurement, expected_ns: float, *, unreliable: bool, withheld: bool) -> int:
    """The same with floats, which takes less time for a few measurements."""
    key = CONVENTION_UNIT * one.convention
    if one.age_years >= ADULT_AGE_YEARS:
        key += (one.diameter_mm >= LARGE_DIAMETER.high) + 2 * (one.bmi_kg_m2 > HIGH_BMI.high)
    if not (FAR_OUT.holds(expected_ns) or withheld):
        key += FAR_UNIT * FAR.index(_far_out(one.diameter_mm, expected_ns, unreliable=unreliable))
    return key


@cache
def advisories(key: int) -> tuple[Advisory, ...]:
    """The same object for the same key."""
    large, obese = key % 2, key % FAR_UNIT // 2
    far, convention = key % CONVENTION_UNIT // FAR_UNIT, key // CONVENTION_UNIT
    found = (LARGE if large else None, _not_stated(CONVENTIONS[convention]), FAR[far], OBESE if obese else None)
    return tuple(advisory for advisory in found if advisory)


def _far_out(diameter_mm: float, expected_ns: float, *, unreliable: bool) -> Advisory:
    if unreliable:
        return FAR_AND_NOT_RELIABLE
    if expected_ns < 0.0:
        return FAR_BELOW
    return FAR_ABOVE if diameter_mm <= WIDEST_USUAL_MM else FAR_AND_RARE


def _not_stated(convention: Convention) -> Advisory | None:
    missing = convention.not_stated
    if not missing:
        return None
    hint = f" {INNER_EDGE}" if "edge" in missing else ""
    message = f"The {listed(missing)} of the measurement {'was' if len(missing) == 1 else 'were'} not stated.{hint}"
    return Advisory("convention_not_stated", "convention", message)
