"""What the numbers say, in one sentence for clinicians and one for patients.

They state the score, its interval, the probability of exceeding 2, and where that places the score. They never
name a disease, a grade, a risk or a treatment, and never call an aorta normal: that is for people who know more.
Certainty is never claimed: probabilities end at "<1 %" and ">99 %".
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.score import UNLIKELY, Answer, Score

SITES = {"SoV": "sinus of Valsalva", "AA": "ascending aorta"}

EVALUATION = "Evaluation model, not for care"
INTENDED_USE = (
    "Places one aortic diameter among those of a reference group of the same age, sex, height and weight, for "
    "clinicians, beside everything else that is known of the patient. It does not diagnose, grade or advise."
)
WARNINGS = {"ok": "", "caution": "caution", "not_reliable": "not reliable"}

# The reasons in words for patients; clinicians read the reason's own message.
PLAIN_REASONS = {
    "wide_interval": "the result is imprecise for people like you",
    "sparse_context": "few people like you are in the reference group",
    "outside_training_range": "your age or body size lies outside that of the reference group",
    "edge_of_training_range": "few people of your age are in the reference group",
    "convention_differs": "you were not measured in the same way as the reference group",
}
NOT_COVERED = "the reference group does not cover this measurement"

CLINICIAN_PLACES = {
    "above_2": "which places the score above 2",
    "below_minus_2": "which places the score below -2",
    "within": "which places the score between -2 and 2",
    "uncertain above 2": "which leaves it uncertain on which side of 2 the score lies",
    "uncertain below -2": "which leaves it uncertain on which side of -2 the score lies",
    "uncertain on both sides": "which leaves it uncertain on which side of -2 and of 2 the score lies",
}
PATIENT_PLACES = {
    "above_2": "so it is very likely above 2",
    "below_minus_2": "so it is very likely below -2",
    "within": "so it very likely lies between -2 and 2",
    "uncertain above 2": "so it is not certain whether it is above 2",
    "uncertain below -2": "so it is not certain whether it is below -2",
    "uncertain on both sides": "so it is not certain whether it lies between -2 and 2",
}


@dataclass(frozen=True, slots=True)
class Tails:
    """What the position rests on, whatever thresholds were asked for."""

    above_2: float  # P(NS > 2)
    below_minus_2: float  # P(NS < -2)


@dataclass(frozen=True, slots=True)
class Summary:
    clinician: str
    patient: str


def intended_use(*, simulated: bool) -> str:
    return f"{EVALUATION}: it was trained on simulated people. {INTENDED_USE}" if simulated else INTENDED_USE


def summarise(site: str, answer: Answer, tails: Tails, *, simulated: bool) -> Summary:
    """Both sentences. Where the score is withheld they say so and why, and `tails` is not looked at."""
    where, score = SITES.get(site, site), answer.score
    told = _joined(_lowered(reason.message) for reason in answer.reliability.reasons)
    plain = _joined(PLAIN_REASONS.get(reason.code, NOT_COVERED) for reason in answer.reliability.reasons)
    if score is None:
        clinician = f"no score is given for the diameter at the {where} because {told}"
        patient = f"no score is given for your measurement at the {where} because {plain}"
        return Summary(_sentence(simulated, "", clinician), _sentence(simulated, "", patient))
    warning = WARNINGS[answer.reliability.verdict]
    return Summary(
        _sentence(simulated, warning and f"{warning}, because {told}", _clinician(where, score, tails)),
        _sentence(simulated, warning and f"{warning}, because {plain}", _patient(where, score, tails)),
    )


def percent(probability: float) -> str:
    if probability < 0.01:
        return "<1 %"
    return ">99 %" if probability > 0.99 else f"{100 * probability:.0f} %"


def _clinician(where: str, score: Score, tails: Tails) -> str:
    below = f" and that of lying below -2 is {percent(tails.below_minus_2)}" if _is_open_below(tails) else ""
    return (
        f"the diameter at the {where} has a normalcy score of {_two(score.expected_ns)} "
        f"({100 * score.hdi.probability:g} % interval {_two(score.hdi.low)} to {_two(score.hdi.high)}); "
        f"the probability of exceeding 2 is {percent(tails.above_2)}{below}, {CLINICIAN_PLACES[_place(score, tails)]}"
    )


def _patient(where: str, score: Score, tails: Tails) -> str:
    below = f" and that it is below -2 is {percent(tails.below_minus_2)}" if _is_open_below(tails) else ""
    return (
        "on a scale where 0 is the width expected for your age, sex, height and weight, and most people lie "
        f"between -2 and 2, your measurement at the {where} scores {_two(score.expected_ns)} (between "
        f"{_two(score.hdi.low)} and {_two(score.hdi.high)} with a chance of {100 * score.hdi.probability:g} %); "
        f"the chance that the score is above 2 is {percent(tails.above_2)}{below}, "
        f"{PATIENT_PLACES[_place(score, tails)]}"
    )


def _place(score: Score, tails: Tails) -> str:
    if score.position != "uncertain":
        return score.position
    if not _is_open_below(tails):
        return "uncertain above 2"
    return "uncertain on both sides" if tails.above_2 > UNLIKELY else "uncertain below -2"


def _is_open_below(tails: Tails) -> bool:
    return tails.below_minus_2 > UNLIKELY


def _sentence(simulated: bool, warning: str, told: str) -> str:
    opening = "; ".join(part for part in (EVALUATION if simulated else "", warning) if part)
    text = f"{opening}: {told}." if opening else f"{told}."
    return text[0].upper() + text[1:]


def _joined(reasons: Iterable[str]) -> str:
    """Each once, in order."""
    return ", and because ".join(dict.fromkeys(reasons)) or NOT_COVERED


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")


def _two(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # no negative zero
