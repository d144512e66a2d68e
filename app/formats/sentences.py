"""What the numbers say, in one sentence for clinicians and a few plain ones for patients.

They state the measurement with what is expected, the score, its interval and the probability of exceeding 2. They never
name a disease, a grade, a risk or a treatment, and never call an aorta normal: that is for people who know more.
"""

from dataclasses import dataclass

from app.formats.clinician_text import SITES, clinician_text
from app.formats.patient_text import patient_text
from app.formats.wording import Judged

__all__ = ["EVALUATION", "INTENDED_USE", "SITES", "Judged", "Summary", "intended_use", "summarise"]

EVALUATION = "Evaluation model, not for care"
INTENDED_USE = (
    "Places one aortic diameter among those of a reference group of the same age, sex, height and weight, for "
    "clinicians, beside everything else that is known of the patient. It does not diagnose, grade or advise."
)


@dataclass(frozen=True, slots=True)
class Summary:
    clinician: str
    patient: str


def intended_use(*, simulated: bool) -> str:
    return f"{EVALUATION}: it was trained on simulated people. {INTENDED_USE}" if simulated else INTENDED_USE


def summarise(judged: Judged, *, simulated: bool) -> Summary:
    """Both texts. Where the score is withheld they say why, and nothing of it."""
    opening = EVALUATION if simulated else ""
    return Summary(clinician_text(judged, opening), patient_text(judged, opening))
