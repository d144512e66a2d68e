"""What the numbers say: one sentence for clinicians, and a few plain ones for patients or the parents of a child.

Both state the measurement beside what is expected, the score, its interval and the probability of exceeding 2. They
never name a disease, a grade, a risk or a treatment, and never call an aorta normal: that is for people who know more
about the patient. No certainty is claimed: "<1%" and ">99%" are the extremes, and to patients every range and chance
is called estimated. Outside the training range they give what the model would expect, never how many people measure so.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from app.domain.limits import ADULT_AGE_YEARS
from app.domain.patient import Patient, Sex, completed_age
from app.domain.query import ScoreQuery
from app.domain.score import DIFFERS, EDGE, OUTSIDE, SPARSE, UNLIKELY, WIDE, Finding, Tails, deciding_finding
from app.schemas.answers import Answer, Hdi, Summary

EVALUATION = "Evaluation model, not for care"
INTENDED_USE = (
    "Shows clinicians where one aortic diameter lies among those of a reference group of the same age, sex, height "
    "and weight, to be read alongside everything else that is known about the patient. It does not diagnose, grade or "
    "advise."
)

SITES = {"SoV": "sinus of Valsalva", "AA": "ascending aorta"}
CLINICIAN_WARNINGS = {"caution": "caution, because", "not_reliable": "not reliable, because"}
CLINICIAN_NOT_COVERED = "the training cohort does not cover this measurement"

# The message of this reason is about the width at a score of 2; beside the interval at another score it would confuse.
IMPRECISE = {
    "caution": "the score is imprecise for patients of this age, sex and body size",
    "not_reliable": "the score is too imprecise for patients of this age, sex and body size",
}

# By the code and what the reason is about; {you}, {are} and {your} are those of the reader or of the reader's child.
PLAIN_REASONS = {
    (OUTSIDE, "older"): "{you} {are} older than everyone in the comparison group",
    (OUTSIDE, "younger"): "{you} {are} younger than everyone in the comparison group",
    (OUTSIDE, "height"): "{your} height is outside the range of the comparison group",
    (OUTSIDE, "weight"): "{your} weight is outside the range of the comparison group",
    (OUTSIDE, "body mass index"): "{your} weight for {your} height is outside the range of the comparison group",
    (OUTSIDE, "sex"): "the comparison group includes nobody of {your} sex",
    (EDGE, "old"): "few people in the comparison group are as old as {you}",
    (EDGE, "young"): "few people in the comparison group are as young as {you}",
    (DIFFERS, "convention"): "the measurement was taken differently from those in the comparison group",
    (WIDE, "width"): "the score is less precise for someone of {your} age and size",
    (SPARSE, "rarity"): "the comparison group includes few people like {you}",
}
# Of a finding that leads to `not_reliable` by itself, where the words above would fit a score with caution too.
TOO_FAR = "is too far outside the range of the comparison group"
PLAIN_REASONS_NOT_RELIABLE = {
    (OUTSIDE, "height"): f"{{your}} height {TOO_FAR}",
    (OUTSIDE, "weight"): f"{{your}} weight {TOO_FAR}",
    (OUTSIDE, "body mass index"): f"{{your}} weight for {{your}} height {TOO_FAR}",
    (WIDE, "width"): "the comparison is too uncertain for someone of {your} age and size",
}
PATIENT_NOT_COVERED = "the comparison group does not cover this measurement"

ADULT = {"you": "you", "are": "are", "your": "your", "people": "people of your age, sex, height and weight"}
CHILD = {
    "you": "your child",
    "are": "is",
    "your": "your child's",
    "people": "children of the same age, sex, height and weight",
}
PLACES = {
    "SoV": "the root of {your} aorta (the large artery that leaves the heart)",
    "AA": "the ascending part of {your} aorta (the large artery that leaves the heart)",
}
OTHER_PLACE = "the site {site}"

PATIENT_WARNINGS = {
    "caution": "Please note: this comparison may be less accurate than usual, because {why}.",
    "not_reliable": "The numbers in this comparison are not reliable, because {why}.",
}

Words = dict[str, str]


@dataclass(frozen=True, slots=True)
class ScoredMeasurement:
    """A measurement with everything that the summaries say about it."""

    site: str
    query: ScoreQuery
    answer: Answer
    tails: Tails
    tails_with_measurement_error: Tails | None  # None: no error was stated
    findings: tuple[Finding, ...]  # that led to the verdict

    @property
    def deciding(self) -> Finding | None:
        return deciding_finding(self.findings)

    @property
    def is_covered(self) -> bool:
        """Whether the texts may say how people like this patient measure: outside the training range none was seen."""
        outside = any(finding.code == OUTSIDE for finding in self.findings)
        return not outside and self.answer.reliability.verdict != "not_reliable"


def intended_use(*, simulated: bool) -> str:
    return f"{EVALUATION}: it was trained on simulated people. {INTENDED_USE}" if simulated else INTENDED_USE


def summarise(judged: ScoredMeasurement, *, simulated: bool) -> Summary:
    """Both texts. Where the score is withheld they say why, and nothing about the score."""
    opening, figures = EVALUATION if simulated else "", _figures(judged)
    return Summary(_clinician_text(judged, figures, opening), _patient_text(judged, figures, opening))


class _Interval(NamedTuple):
    """An interval of the score with its tails, as both texts give them."""

    share: str
    ends: str
    tails: Tails


class _Figures(NamedTuple):
    """The numbers of a measurement with a score, as both texts give them."""

    expected_mm: str
    low_mm: str
    high_mm: str
    share_mm: str  # of the interval in mm
    score: str
    interval: _Interval
    with_measurement_error: _Interval | None


def _figures(judged: ScoredMeasurement) -> _Figures | None:
    """None where the score is withheld."""
    score, reference = judged.answer.score, judged.answer.reference
    if score is None or reference is None:
        return None
    with_error, tails = judged.answer.score_with_measurement_error, judged.tails_with_measurement_error
    interval = reference.interval_mm
    return _Figures(
        tenths(reference.expected_diameter_mm),
        tenths(interval.low),
        tenths(interval.high),
        share(interval.probability),
        two_digits(score.expected_ns),
        _interval(score.hdi, judged.tails),
        _interval(with_error.hdi, tails) if with_error is not None and tails is not None else None,
    )


def _interval(hdi: Hdi, tails: Tails) -> _Interval:
    return _Interval(share(hdi.probability), f"{two_digits(hdi.low)} to {two_digits(hdi.high)}", tails)


def _clinician_text(judged: ScoredMeasurement, figures: _Figures | None, opening: str) -> str:
    """`opening` goes before everything else; it may be empty."""
    if figures is None:
        return _clinician_sentence(
            opening, "", f"{_clinician_why(judged.deciding)}, so no score is given for {_measurement(judged)}"
        )
    verdict = judged.answer.reliability.verdict
    warning = (
        f"{CLINICIAN_WARNINGS[verdict]} {_clinician_why(judged.deciding)}" if verdict in CLINICIAN_WARNINGS else ""
    )
    found = f"{_clinician_measured(judged, figures)}, {_clinician_scored(figures)}"
    return _clinician_sentence(opening, warning, f"{found}{_clinician_with_measurement_error(judged, figures)}")


def _clinician_sentence(opening: str, warning: str, found: str) -> str:
    before = "; ".join(part for part in (opening, warning) if part)
    return capitalised(f"{before}: {found}." if before else f"{found}.")


def _clinician_why(reason: Finding | None) -> str:
    if reason is None:
        return CLINICIAN_NOT_COVERED
    return IMPRECISE[reason.verdict] if reason.code == WIDE else as_clause(reason.message)


def _measurement(judged: ScoredMeasurement) -> str:
    patient, diameter = person(judged.query.patient), as_given(judged.query.diameter_mm)
    return f"the {diameter} mm measured at {_clinician_place(judged.site)} in this {patient}"


def _clinician_measured(judged: ScoredMeasurement, figures: _Figures) -> str:
    expected, range_name = ("expected", "reference range") if judged.is_covered else ("the model would expect", "range")
    return (
        f"in this {person(judged.query.patient)}, {_clinician_place(judged.site)} measured "
        f"{as_given(judged.query.diameter_mm)} mm ({expected} {figures.expected_mm} mm, "
        f"{figures.share_mm} {range_name} {figures.low_mm} to {figures.high_mm} mm)"
    )


def _clinician_place(site: str) -> str:
    return f"the {SITES[site]}" if site in SITES else f"the site {site}"


def _clinician_scored(figures: _Figures) -> str:
    interval = f"{figures.interval.share} interval {figures.interval.ends}"
    return f"giving a normalcy score of {figures.score} ({interval}); {_probabilities(figures.interval.tails)}"


def _clinician_with_measurement_error(judged: ScoredMeasurement, figures: _Figures) -> str:
    interval = figures.with_measurement_error
    if interval is None:
        return ""
    error = f"allowing for the stated measurement error (SD {error_as_given(judged.query.measurement_sd_mm)} mm)"
    return f"; {error}, the {interval.share} interval is {interval.ends} and {_probabilities(interval.tails)}"


def _probabilities(tails: Tails) -> str:
    below = f" and that of being below -2 is {percent(tails.below_minus_2)}" if is_open_below(tails) else ""
    return f"the probability of exceeding 2 is {percent(tails.above_2)}{below}"


def _patient_text(judged: ScoredMeasurement, figures: _Figures | None, opening: str) -> str:
    """`opening` goes before everything else; it may be empty."""
    words = CHILD if is_child(judged.query.patient) else ADULT
    sentences = [capitalised(sentence) for sentence in _patient_sentences(judged, figures, words)]
    return " ".join([f"{opening}.", *sentences] if opening else sentences)


def plain_reason(reason: Finding | None, words: Words = ADULT) -> str:
    if reason is None:
        return PATIENT_NOT_COVERED
    key = reason.code, reason.about
    usual = PLAIN_REASONS.get(key, PATIENT_NOT_COVERED)
    plain = PLAIN_REASONS_NOT_RELIABLE.get(key, usual) if reason.verdict == "not_reliable" else usual
    return plain.format_map(words)


def _patient_sentences(judged: ScoredMeasurement, figures: _Figures | None, words: Words) -> list[str]:
    if figures is None:
        return [_withheld(judged, plain_reason(judged.deciding, words), words)]
    warning, with_error = PATIENT_WARNINGS.get(judged.answer.reliability.verdict), figures.with_measurement_error
    sentences = [
        f"{_patient_place(judged.site, words)} measures {as_given(judged.query.diameter_mm)} mm across.",
        _expected(figures, words, covered=judged.is_covered),
        _patient_scored(figures, words),
    ]
    if warning is not None:
        sentences.insert(0, warning.format(why=plain_reason(judged.deciding, words)))
    if with_error is not None:
        error = error_as_given(judged.query.measurement_sd_mm)
        sentences.append(
            f"Allowing for a measurement error of about {error} mm, {_estimated_range(with_error)}; "
            f"{_chances(with_error.tails)}."
        )
    return sentences


def _withheld(judged: ScoredMeasurement, why: str, words: Words) -> str:
    diameter, where = as_given(judged.query.diameter_mm), _patient_place(judged.site, words)
    return f"{why}, so no score is given for the {diameter} mm measured at {where}."


def _expected(figures: _Figures, words: Words, *, covered: bool) -> str:
    if not covered:
        return (
            f"For {words['people']}, the model would expect {figures.expected_mm} mm, with a range "
            f"from {figures.low_mm} to {figures.high_mm} mm."
        )
    return (
        f"For {words['people']}, {figures.expected_mm} mm is expected, and about "
        f"{figures.share_mm.rstrip('%')} in 100 of them have a measurement between {figures.low_mm} and "
        f"{figures.high_mm} mm."
    )


def _patient_scored(figures: _Figures, words: Words) -> str:
    return (
        f"On a scale where 0 is what is expected and most people score between -2 and 2, {words['your']} score is "
        f"estimated at {figures.score}; {_estimated_range(figures.interval)}. "
        f"{capitalised(_chances(figures.interval.tails))}."
    )


def _patient_place(site: str, words: Words) -> str:
    return PLACES.get(site, OTHER_PLACE).format_map(words | {"site": site})


def _estimated_range(interval: _Interval) -> str:
    return f"the estimated {interval.share} range of the score is {interval.ends}"


def _chances(tails: Tails) -> str:
    above, below = percent_in_words(tails.above_2), percent_in_words(tails.below_minus_2)
    also_below = f", and the estimated chance that it is below -2 is {below}" if is_open_below(tails) else ""
    return f"the estimated chance that the score is above 2 is {above}{also_below}"


def percent(probability: float) -> str:
    if probability < 0.01:
        return "<1%"
    return ">99%" if probability > 0.99 else f"{100 * probability:.0f}%"


def percent_in_words(probability: float) -> str:
    return percent(probability).replace("<", "less than ").replace(">", "more than ")


def share(probability: float) -> str:
    """The probability of an interval, as it was requested."""
    return f"{100 * probability:.6g}%"


def two_digits(value: float) -> str:
    return f"{value:z.2f}"  # z: no negative zero


def tenths(mm: float) -> str:
    return f"{mm:z.1f}"


def as_given(mm: float) -> str:
    """A diameter as the caller sent it: rounded to 40 mm, one of 39.996 mm would seem to reach the 40 mm of adults."""
    return f"{mm:.9g}"


def error_as_given(mm: float) -> str:
    """To three significant digits, however small."""
    return f"{Decimal(f'{mm:.3g}'):f}"


def is_child(patient: Patient) -> bool:
    return patient.age_years < ADULT_AGE_YEARS


def person(patient: Patient) -> str:
    """55-year-old man, 7-year-old girl, 18-month-old boy, newborn girl"""
    adult, child = ("woman", "girl") if patient.sex == Sex.FEMALE else ("man", "boy")
    number, unit = completed_age(patient.age_years)
    return f"{number}-{unit}-old {child if is_child(patient) else adult}" if number else f"newborn {child}"


def is_open_below(tails: Tails) -> bool:
    """Whether the lower side bears on the position."""
    return tails.below_minus_2 > UNLIKELY


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def as_clause(message: str) -> str:
    """A sentence as a clause of another one."""
    return message[:1].lower() + message[1:].rstrip(".")
