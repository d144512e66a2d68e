"""Every allowed and advisory range, with its unit, in one table: for checks, for messages and for front ends."""

from dataclasses import dataclass

ADULT_AGE_YEARS = 18.0
SCHOOL_AGE_YEARS = 5.0  # from here on a root below 10 mm is a slip of the unit, not a small child


@dataclass(frozen=True, slots=True)
class Limit:
    """`low <= value <= high`, or `value < high` where `high_excluded`, for people of at least `from_age_years`.

    Outside, the request is refused; where `advisory` names a code, it is answered with that advisory.
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
THRESHOLD = Limit("thresholds[]", "NS", -10.0, 10.0, default=2.0)
HDI_PROBABILITY = Limit("hdi_probability", "probability", 0.5, 0.99, default=0.95)
MEASUREMENT_SD = Limit("measurement_sd_mm", "mm", 0.0, 5.0, default=0.0)

THRESHOLDS = Limit("thresholds", "numbers", 1, 8, default=1)
SUBJECT = Limit("subject", "characters", 1, 128)
STUDY_MEASUREMENTS = Limit("measurements", "measurements", 1, 8)
BATCH_ITEMS = Limit("items", "items", 0, 10_000)

# Advisories: answered, and told.
LARGE_DIAMETER = Limit(
    "diameter_mm", "mm", 3.0, 40.0, from_age_years=ADULT_AGE_YEARS, high_excluded=True, advisory="absolute_diameter"
)
HIGH_BMI = Limit("bmi_kg_m2", "kg/m²", 8.0, 50.0, from_age_years=ADULT_AGE_YEARS, advisory="bmi_high")
FAR_OUT = Limit("expected_ns", "NS", -6.0, 6.0, advisory="far_out")

LIMITS = (
    AGE,
    HEIGHT,
    WEIGHT,
    BMI,
    DIAMETER,
    DIAMETER_FROM_SCHOOL_AGE,
    THRESHOLD,
    HDI_PROBABILITY,
    MEASUREMENT_SD,
    THRESHOLDS,
    SUBJECT,
    STUDY_MEASUREMENTS,
    BATCH_ITEMS,
    LARGE_DIAMETER,
    HIGH_BMI,
    FAR_OUT,
)
