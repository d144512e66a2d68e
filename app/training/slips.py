"""What a value that cannot be true may have meant: metres, inches, pounds, months."""

from app.domain import limits
from app.domain.patient import bmi_kg_m2, unusualness

MISPLACED_POINT = "a decimal point in the wrong place?"

# field -> (factor, low, high, question), asked if factor·value falls between low and high. The first that fits wins.
SLIPS = {
    "age_years": ((1.0 / 12.0, 0.0, 120.0, "given in months?"),),
    "height_cm": (
        (100.0, 40.0, 250.0, "given in m?"),
        (10.0, 40.0, 250.0, MISPLACED_POINT),
        (0.1, 40.0, 250.0, "given in mm?"),
    ),
    "weight_kg": ((0.1, 20.0, 200.0, MISPLACED_POINT), (0.001, 1.5, 350.0, "given in g?")),
    "diameter_mm": ((10.0, 10.0, 80.0, "given in cm?"), (0.1, 10.0, 80.0, MISPLACED_POINT)),
}

EXCHANGED = "height and weight exchanged?"  # asked where no other unit explains the body
PLAUSIBLE_BMI = (12.0, 60.0)  # kg/m²
TALLEST_PLAUSIBLE_CM = 200.0


def question(field: str, value: float) -> str:
    """What a forbidden value may have meant, as an addition to a sentence; empty if nothing fits."""
    return next((f" ({asked})" for factor, low, high, asked in SLIPS[field] if low <= factor * value <= high), "")


def body_question(height_cm: float, weight_kg: float) -> str:
    """For a pair that gives no possible body mass index: the misreading that would make it the most usual body."""
    readings = {
        "height given in inches?": (2.54 * height_cm, weight_kg),
        "weight given in pounds?": (height_cm, 0.45359237 * weight_kg),
        "height and weight given in inches and pounds?": (2.54 * height_cm, 0.45359237 * weight_kg),
        EXCHANGED: (weight_kg, height_cm),
    }
    plausible = {asked: body for asked, body in readings.items() if _is_plausible(*body)}
    asked = min(plausible, key=lambda reading: (reading == EXCHANGED, unusualness(*plausible[reading])), default=None)
    return f" ({asked})" if asked else ""


def _is_plausible(height_cm: float, weight_kg: float) -> bool:
    low, high = PLAUSIBLE_BMI
    return limits.HEIGHT.low <= height_cm <= TALLEST_PLAUSIBLE_CM and low <= bmi_kg_m2(height_cm, weight_kg) <= high
