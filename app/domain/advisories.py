"""What a reader should know beside the score. An advisory never withholds anything."""

from collections.abc import Iterator

from app.domain.limits import FAR_OUT, HIGH_BMI, LARGE_DIAMETER, Limit
from app.domain.question import Question
from app.domain.score import Advisory

LARGE = (
    "Guidelines for adults define dilatation of the aortic root and the ascending aorta by absolute size as well, from "
    "40 mm on. Such a definition applies whatever the score."
)
OBESE = "The body mass index is above 50 kg/m². Was the weight given in pounds?"
CONFIRM = "If the value is unexpected, confirm the reading and its unit (mm)."
FAR_ABOVE = f"The score lies above 6. Aneurysms of this size exist. {CONFIRM}"
FAR_BEYOND_ANEURYSMS = f"The score lies above 6, and few aneurysms are so wide. {CONFIRM}"
FAR_BELOW = f"The score lies below -6, and few aortas are so narrow. {CONFIRM}"

WIDEST_USUAL_ANEURYSM_MM = 80.0  # only the words change here, not whether there is an advisory


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
        yield Advisory("far_out", "diameter_mm", _far_out(question.diameter_mm, expected_ns))
    if _beyond(HIGH_BMI, patient.bmi_kg_m2, patient.age_years):
        yield Advisory("bmi_high", "weight_kg", OBESE)


def _far_out(diameter_mm: float, expected_ns: float) -> str:
    if expected_ns < 0.0:
        return FAR_BELOW
    return FAR_ABOVE if diameter_mm <= WIDEST_USUAL_ANEURYSM_MM else FAR_BEYOND_ANEURYSMS


def _beyond(limit: Limit, value: float, age_years: float) -> bool:
    return age_years >= limit.from_age_years and not limit.holds(value)
