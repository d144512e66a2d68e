"""The text for the patient, or for the parents of a child: short sentences, everyday words.

It says what was measured, what is expected, and where the score lies; not what it means for this person, because
that is for people who know more.
"""

from collections.abc import Iterator

from app.domain.reliability import DIFFERS, EDGE, OUTSIDE, SPARSE, WIDE, deciding_reason
from app.domain.score import HDI, Reason, Reference, Reliability, Score, Tails
from app.formats.wording import (
    Judged,
    as_given,
    begun,
    error_as_given,
    is_child,
    is_open_below,
    percent_in_words,
    share,
    tenths,
    two_digits,
)

# By the code and what the reason is about; {you}, {are} and {your} are those of the reader or of the reader's child.
PLAIN_REASONS = {
    (OUTSIDE, "older"): "{you} {are} older than everyone in the comparison group",
    (OUTSIDE, "younger"): "{you} {are} younger than everyone in the comparison group",
    (OUTSIDE, "height"): "{your} height is outside the range of the comparison group",
    (OUTSIDE, "weight"): "{your} weight is outside the range of the comparison group",
    (OUTSIDE, "body mass index"): "{your} weight for {your} height is outside the range of the comparison group",
    (OUTSIDE, "sex"): "nobody in the comparison group has {your} sex",
    (EDGE, "old"): "few people in the comparison group are as old as {you}",
    (EDGE, "young"): "few people in the comparison group are as young as {you}",
    (DIFFERS, "convention"): "the measurement was taken differently from those in the comparison group",
    (WIDE, "width"): "the comparison is less exact for people of {your} age and size",
    (SPARSE, "rarity"): "few people like {you} are in the comparison group",
}
TOO_UNCERTAIN = "the comparison is too uncertain for people of {your} age and size"
NOT_COVERED = "the comparison group does not cover this measurement"

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

WARNINGS = {
    "caution": "Caution: this result is less certain than others, because {why}.",
    "not_reliable": "This result is not reliable, because {why}.",
}

Words = dict[str, str]


def patient_text(judged: Judged, opening: str) -> str:
    """`opening` goes before everything else; it may be empty."""
    words = CHILD if is_child(judged.query.patient) else ADULT
    return " ".join([f"{opening}."] * bool(opening) + [begun(sentence) for sentence in _sentences(judged, words)])


def plain_reason(reason: Reason | None, words: Words = ADULT) -> str:
    if reason is None:
        return NOT_COVERED
    if (reason.code, reason.verdict) == (WIDE, "not_reliable"):
        return TOO_UNCERTAIN.format_map(words)
    return PLAIN_REASONS.get((reason.code, reason.about), NOT_COVERED).format_map(words)


def _sentences(judged: Judged, words: Words) -> Iterator[str]:
    answer, why = judged.answer, plain_reason(deciding_reason(judged.answer.reliability), words)
    if answer.score is None or answer.reference is None:
        yield _withheld(judged, why, words)
        return
    yield from _warned(answer.reliability, why)
    yield _measured(judged, words)
    yield _expected(answer.reference, answer.reliability, words)
    yield _scored(answer.score, judged.tails)
    yield from _with_measurement_error(judged)


def _withheld(judged: Judged, why: str, words: Words) -> str:
    diameter, where = as_given(judged.query.diameter_mm), _place(judged.site, words)
    return f"{why}, so no score is given for the {diameter} mm measured at {where}."


def _warned(reliability: Reliability, why: str) -> Iterator[str]:
    if reliability.verdict in WARNINGS:
        yield WARNINGS[reliability.verdict].format(why=why)


def _measured(judged: Judged, words: Words) -> str:
    return f"{_place(judged.site, words)} measures {as_given(judged.query.diameter_mm)} mm across."


def _expected(reference: Reference, reliability: Reliability, words: Words) -> str:
    interval = reference.interval_mm
    if reliability.verdict == "not_reliable":
        return (
            f"For {words['people']}, the model would expect {tenths(reference.expected_diameter_mm)} mm, with a range "
            f"from {tenths(interval.low)} to {tenths(interval.high)} mm."
        )
    return (
        f"For {words['people']}, {tenths(reference.expected_diameter_mm)} mm is expected, and about "
        f"{100 * interval.probability:.0f} in 100 of them measure between {tenths(interval.low)} and "
        f"{tenths(interval.high)} mm."
    )


def _scored(score: Score, tails: Tails) -> str:
    return (
        "On a scale where 0 is what is expected and most people lie between -2 and 2, the score is estimated at "
        f"{two_digits(score.expected_ns)}; it lies {_between(score.hdi)}, and {_chances(tails)}."
    )


def _with_measurement_error(judged: Judged) -> Iterator[str]:
    score, tails = judged.answer.score_with_measurement_error, judged.tails_with_measurement_error
    if score is not None and tails is not None:
        error = error_as_given(judged.query.measurement_sd_mm)
        yield (
            f"If the measurement may be off by about {error} mm, the score lies {_between(score.hdi)}, "
            f"and {_chances(tails)}."
        )


def _place(site: str, words: Words) -> str:
    return PLACES.get(site, OTHER_PLACE).format_map(words | {"site": site})


def _between(hdi: HDI) -> str:
    return f"between {two_digits(hdi.low)} and {two_digits(hdi.high)} with {share(hdi.probability)} certainty"


def _chances(tails: Tails) -> str:
    above, below = percent_in_words(tails.above_2), percent_in_words(tails.below_minus_2)
    if is_open_below(tails):
        return f"the chance is {above} that it is above 2 and {below} that it is below -2"
    return f"the chance that it is above 2 is {above}"
