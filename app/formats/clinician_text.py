"""The sentence for the clinician: millimetres and the reference range, then score, interval and probability."""

from app.domain.reliability import WIDE, deciding_reason
from app.domain.score import HDI, Reference, Reliability, Score, Tails
from app.formats.wording import (
    Judged,
    as_given,
    begun,
    continued,
    error_as_given,
    is_open_below,
    percent,
    person,
    share,
    tenths,
    two_digits,
)

SITES = {"SoV": "sinus of Valsalva", "AA": "ascending aorta"}
WARNINGS = {"caution": "caution, because", "not_reliable": "not reliable, because"}
NOT_COVERED = "the training people do not cover this reading"

# Its message speaks of a width at a score of 2; beside the interval at another score that would only confuse.
IMPRECISE = {
    "caution": "for people of this age, sex and body size the score is imprecise",
    "not_reliable": "for people of this age, sex and body size the score is too imprecise",
}


def clinician_text(judged: Judged, opening: str) -> str:
    """`opening` goes before everything else; it may be empty."""
    answer = judged.answer
    if answer.score is None or answer.reference is None:
        return _sentence(opening, "", f"{_why(answer.reliability)}, so no score is given for {_reading(judged)}")
    verdict = answer.reliability.verdict
    warning = f"{WARNINGS[verdict]} {_why(answer.reliability)}" if verdict in WARNINGS else ""
    found = f"{_measured(judged, answer.reference)}, {_scored(answer.score, judged.tails)}"
    return _sentence(opening, warning, f"{found}{_with_measurement_error(judged)}")


def _sentence(opening: str, warning: str, found: str) -> str:
    before = "; ".join(part for part in (opening, warning) if part)
    return begun(f"{before}: {found}." if before else f"{found}.")


def _why(reliability: Reliability) -> str:
    reason = deciding_reason(reliability)
    if reason is None:
        return NOT_COVERED
    return IMPRECISE[reason.verdict] if reason.code == WIDE else continued(reason.message)


def _reading(judged: Judged) -> str:
    patient, diameter = person(judged.query.patient), as_given(judged.query.diameter_mm)
    return f"the {diameter} mm measured at {_place(judged.site)} of this {patient}"


def _measured(judged: Judged, reference: Reference) -> str:
    covered = judged.answer.reliability.verdict != "not_reliable"
    expected, range_name = ("expected", "reference range") if covered else ("the model would expect", "range")
    interval = reference.interval_mm
    return (
        f"in this {person(judged.query.patient)} {_place(judged.site)} measured "
        f"{as_given(judged.query.diameter_mm)} mm ({expected} {tenths(reference.expected_diameter_mm)} mm, "
        f"{share(interval.probability)} {range_name} {tenths(interval.low)} to {tenths(interval.high)} mm)"
    )


def _place(site: str) -> str:
    return f"the {SITES[site]}" if site in SITES else f"the site {site}"


def _scored(score: Score, tails: Tails) -> str:
    interval = f"{share(score.hdi.probability)} interval {_ends(score.hdi)}"
    return f"a normalcy score of {two_digits(score.expected_ns)} ({interval}); {_probabilities(tails)}"


def _with_measurement_error(judged: Judged) -> str:
    score, tails = judged.answer.score_with_measurement_error, judged.tails_with_measurement_error
    if score is None or tails is None:
        return ""
    error = f"allowing for the stated measurement error (SD {error_as_given(judged.query.measurement_sd_mm)} mm)"
    return f"; {error}, the {share(score.hdi.probability)} interval is {_ends(score.hdi)} and {_probabilities(tails)}"


def _probabilities(tails: Tails) -> str:
    below = f" and that of lying below -2 is {percent(tails.below_minus_2)}" if is_open_below(tails) else ""
    return f"the probability of exceeding 2 is {percent(tails.above_2)}{below}"


def _ends(hdi: HDI) -> str:
    return f"{two_digits(hdi.low)} to {two_digits(hdi.high)}"
