"""What a reader should know beside the score. An advisory never withholds anything."""

from collections.abc import Iterator

from app.domain.limits import FAR_OUT, HIGH_BMI, LARGE_DIAMETER, Limit
from app.domain.query import ScoreQuery
from app.domain.score import Advisory, Verdict

LARGE = (
    "Guidelines for adults define dilatation of the aortic root and the ascending aorta by absolute size as well, from "
    "40 mm on. Such a definition applies whatever the score."
)
OBESE = "The body mass index is above 50 kg/m². Was the weight given in pounds?"
CONFIRM = "If the value is unexpected, confirm the reading and its unit (mm)."
FAR_ABOVE = "The score lies above 6. Aneurysms of this size exist."
FAR_BEYOND_ANEURYSMS = "The score lies above 6, and few aneurysms are so wide."
FAR_BELOW = "The score lies below -6, and few aortas are so narrow."
FAR_AND_NOT_RELIABLE = "The score lies beyond ±6."  # of whom the model does not cover, nothing is known to be rare
INNER_EDGE = "Readings from inner edge to inner edge are about 3 mm smaller than those between leading edges."

WIDEST_USUAL_ANEURYSM_MM = 80.0  # only the words change here, not whether there is an advisory


def advise(query: ScoreQuery, expected_ns: float | None, verdict: Verdict) -> tuple[Advisory, ...]:
    """`expected_ns` is None where the score is withheld: then nothing is said that rests on it."""
    return tuple(_advisories(query, expected_ns, verdict))


def _advisories(query: ScoreQuery, expected_ns: float | None, verdict: Verdict) -> Iterator[Advisory]:
    patient = query.patient
    if _beyond(LARGE_DIAMETER, query.diameter_mm, patient.age_years):
        yield Advisory("absolute_diameter", "diameter_mm", LARGE)
    missing = query.convention.not_stated
    if missing:
        message = f"Not stated: {', '.join(missing)} of the reading.{f' {INNER_EDGE}' if 'edge' in missing else ''}"
        yield Advisory("convention_not_stated", "convention", message)
    if expected_ns is not None and not FAR_OUT.holds(expected_ns):
        found = _far_out(query.diameter_mm, expected_ns) if verdict != "not_reliable" else FAR_AND_NOT_RELIABLE
        yield Advisory("far_out", "diameter_mm", f"{found} {CONFIRM}")
    if _beyond(HIGH_BMI, patient.bmi_kg_m2, patient.age_years):
        yield Advisory("bmi_high", "weight_kg", OBESE)


def _far_out(diameter_mm: float, expected_ns: float) -> str:
    if expected_ns < 0.0:
        return FAR_BELOW
    return FAR_ABOVE if diameter_mm <= WIDEST_USUAL_ANEURYSM_MM else FAR_BEYOND_ANEURYSMS


def _beyond(limit: Limit, value: float, age_years: float) -> bool:
    return age_years >= limit.from_age_years and not limit.holds(value)
