"""What a reader should know beside the score. An advisory never withholds anything."""

from collections.abc import Iterator

from app.domain.limits import FAR_OUT, HIGH_BMI, LARGE_DIAMETER, Limit
from app.domain.question import Question
from app.domain.score import Advisory

LARGE = "From 40 mm on, definitions by absolute size apply to adults, whatever the score."
OBESE = "The body mass index is above 50 kg/m². Was the weight given in pounds?"
FAR = "The score lies beyond 6 in size. Recheck the measurement."


def advise(question: Question, expected_ns: float | None) -> tuple[Advisory, ...]:
    """`expected_ns` is None where the score is withheld: then nothing is said that rests on it."""
    return tuple(_advisories(question, expected_ns))


def _advisories(question: Question, expected_ns: float | None) -> Iterator[Advisory]:
    patient = question.patient
    if _beyond(LARGE_DIAMETER, question.diameter_mm, patient.age_years):
        yield Advisory("absolute_diameter", "diameter_mm", LARGE)
    missing = question.convention.not_stated
    if missing:
        message = (
            f"Not stated: {', '.join(missing)} of the reading. Readings by another convention differ by up to one Z."
        )
        yield Advisory("convention_not_stated", "convention", message)
    if expected_ns is not None and not FAR_OUT.holds(expected_ns):
        yield Advisory("far_out", "diameter_mm", FAR)
    if _beyond(HIGH_BMI, patient.bmi_kg_m2, patient.age_years):
        yield Advisory("bmi_high", "weight_kg", OBESE)


def _beyond(limit: Limit, value: float, age_years: float) -> bool:
    return age_years >= limit.from_age_years and not limit.holds(value)
