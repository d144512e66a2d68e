"""Ranges of body sizes and diameters: what a request may hold, and where an answer carries an advisory."""

from dataclasses import dataclass

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
