import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.convention import Convention
from app.domain.patient import Patient, Sex
from app.domain.reliability import judge
from app.domain.score import HDI, Reliability, Verdict, position
from app.formats.sentences import EVALUATION, PLAIN_REASONS, Summary, Tails, intended_use, percent, summarise
from tests.formats.answers import AGE, WEIGHT, WIDE, answer, reliability, score
from tests.samples import a_card

# One of each position, and of each way to be uncertain.
TAILS = {
    "above": Tails(0.9999, 0.0),
    "below": Tails(1e-9, 0.985),
    "within": Tails(0.004, 0.02),
    "uncertain above": Tails(0.34, 0.0),
    "uncertain below": Tails(0.001, 0.61),
    "uncertain both": Tails(0.12, 0.08),
}
VERDICTS: dict[Verdict, Reliability] = {
    "ok": reliability("ok"),
    "caution": reliability("caution", WIDE),
    "not_reliable": reliability("not_reliable", AGE, WEIGHT),
}
SITES = {"SoV": "sinus of Valsalva", "AA": "ascending aorta", "Arch": "Arch"}

FORBIDDEN = re.compile(
    r"\b(normal|abnormal|healthy|dilat\w*|aneurysm\w*|ectasia|disease\w*|diagnos\w*|mild\w*|moderate\w*|severe\w*|grade\w*"
    r"|risks?|danger\w*|safe\w*|should|must|recommend\w*|advis\w*|consult\w*|doctor\w*|treat\w*|surg\w*|follow-up|urgent\w*"
    r"|reassur\w*|concern\w*|worr\w*)\b|(?<![\d.])(0|100) %",
    re.IGNORECASE,
)


def told(site: str, tails: Tails, verdict: Verdict, *, simulated: bool, shown: bool = True) -> Summary:
    given = score(position(tails.above_2, tails.below_minus_2)) if shown else None
    return summarise(site, answer(given, VERDICTS[verdict]), tails, simulated=simulated)


def every_summary() -> list[tuple[str, Summary]]:
    cases = itertools.product(SITES, TAILS, VERDICTS, (True, False))
    shown = [(site, told(site, TAILS[at], verdict, simulated=sim)) for site, at, verdict, sim in cases]
    withheld = itertools.product(SITES, (True, False))
    none = [(site, told(site, TAILS["above"], "not_reliable", simulated=sim, shown=False)) for site, sim in withheld]
    return shown + none


def test_each_is_one_sentence_of_the_allowed_words_about_its_site() -> None:
    for site, summary in every_summary():
        for text in (summary.clinician, summary.patient):
            assert re.fullmatch(r"[A-Z][^.]*(?:\d\.\d[^.]*)*\.", text), text
            assert "  " not in text
            assert not FORBIDDEN.search(text.replace("normalcy", "")), text
            assert f"at the {SITES[site]}" in text


@pytest.mark.parametrize("at", TAILS)
@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("simulated", [True, False])
def test_both_state_score_interval_and_probability(at: str, verdict: Verdict, simulated: bool) -> None:
    tails = TAILS[at]
    summary = told("SoV", tails, verdict, simulated=simulated)
    for text in (summary.clinician, summary.patient):
        assert all(part in text for part in ("1.93", "1.58", "2.30", "95 %", f"2 is {percent(tails.above_2)}"))
        # The lower side gets its number where it bears on the position.
        assert (f"below -2 is {percent(tails.below_minus_2)}" in text) == (
            at in ("below", "uncertain below", "uncertain both")
        )


@pytest.mark.parametrize(
    ("at", "clinician", "patient"),
    [
        ("above", "places the score above 2.", "very likely above 2."),
        ("below", "places the score below -2.", "very likely below -2."),
        ("within", "places the score between -2 and 2.", "very likely lies between -2 and 2."),
        ("uncertain above", "on which side of 2 the score lies.", "not certain whether it is above 2."),
        ("uncertain below", "on which side of -2 the score lies.", "not certain whether it is below -2."),
        (
            "uncertain both",
            "on which side of -2 and of 2 the score lies.",
            "not certain whether it lies between -2 and 2.",
        ),
    ],
)
def test_the_end_says_where_the_score_lies(at: str, clinician: str, patient: str) -> None:
    summary = told("AA", TAILS[at], "ok", simulated=False)
    assert summary.clinician.endswith(clinician)
    assert summary.patient.endswith(patient)


def test_an_evaluation_model_says_so_first() -> None:
    withheld: Verdict = "not_reliable"
    for verdict, shown in [*((verdict, True) for verdict in VERDICTS), (withheld, False)]:
        summary = told("SoV", TAILS["within"], verdict, simulated=True, shown=shown)
        assert summary.clinician.startswith(EVALUATION)
        assert summary.patient.startswith(EVALUATION)
        clinical = told("SoV", TAILS["within"], verdict, simulated=False, shown=shown)
        assert "evaluation" not in (clinical.clinician + clinical.patient).lower()
    assert intended_use(simulated=True).startswith(EVALUATION)
    assert "evaluation" not in intended_use(simulated=False).lower()


def test_a_withheld_score_is_told_with_its_reasons_and_without_numbers_of_it() -> None:
    summary = told("SoV", TAILS["above"], "not_reliable", simulated=False, shown=False)
    assert summary.clinician == (
        "No score is given for the diameter at the sinus of Valsalva because the age lies outside that of the training "
        "people, 5 to 85 years, and because the weight lies outside that of the training people, 17 to 110 kg."
    )
    # Two reasons that are one to a patient are told once.
    assert summary.patient == (
        "No score is given for your measurement at the sinus of Valsalva because your age or body size lies outside "
        "that of the reference group."
    )


def test_an_unreliable_score_begins_with_the_warning() -> None:
    summary = told("SoV", TAILS["above"], "not_reliable", simulated=False)
    assert summary.clinician.startswith("Not reliable, because the age lies outside")
    assert summary.patient.startswith("Not reliable, because your age or body size")
    assert f"{EVALUATION}; not reliable, because" in told("SoV", TAILS["above"], "not_reliable", simulated=True).patient


def test_caution_is_told_with_its_reason() -> None:
    summary = told("SoV", TAILS["within"], "caution", simulated=False)
    assert summary.clinician.startswith(
        "Caution, because for people like this one the 95 % interval of the score is wider"
    )
    assert summary.patient.startswith(f"Caution, because {PLAIN_REASONS['wide_interval']}: ")


@given(st.floats(0, 1))
@example(0.0)
@example(0.01)
@example(0.99)
@example(0.995)
@example(1.0)
def test_certainty_is_never_claimed(probability: float) -> None:
    shown = percent(probability)
    assert shown in ("<1 %", ">99 %") or 1 <= int(shown.removesuffix(" %")) <= 99


@given(st.floats(-1e6, 1e6), st.floats(0.5, 0.99))
@example(-0.001, 0.95)
def test_numbers_are_written_plainly(expected: float, mass: float) -> None:
    given_score = score("within", HDI(mass, expected - 1, expected + 1, 2.0), expected)
    text = summarise("SoV", answer(given_score, VERDICTS["ok"]), TAILS["within"], simulated=False).clinician
    assert "-0.00" not in text
    assert re.search(r"score of -?\d+\.\d\d \(\d\d(\.\d+)? % interval -?\d+\.\d\d to -?\d+\.\d\d\)", text)


def test_every_reason_of_a_verdict_has_words_for_patients() -> None:
    card, opposite = a_card(), Convention("inner", "mid-systole", "CT")
    ages = (0.5 * (card.ranges.age_years.high + card.ranges.age_years_middle_98.high), 0.0, 119.0)
    people = [
        Patient(age, Sex.MALE, height, weight) for age in ages for height, weight in ((176.0, 75.0), (240.0, 340.0))
    ]
    judged = [
        judge(person, taken, card, w2)
        for person in people
        for taken in (opposite, card.convention)
        for w2 in (0.5, 9.9)
    ]
    assert {reason.code for one in judged for reason in one.reasons} == set(PLAIN_REASONS)
