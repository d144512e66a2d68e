import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.card import ModelCard
from app.domain.patient import Patient, Sex
from app.domain.query import Convention, OneMeasurement, ScoreQuery
from app.domain.score import Finding, Tails, Verdict
from app.formats.summaries import (
    EVALUATION,
    PATIENT_NOT_COVERED,
    PLAIN_REASONS,
    ScoredMeasurement,
    error_as_given,
    intended_use,
    percent,
    person,
    plain_reason,
    summarise,
)
from app.inference.reliability_rules import ReliabilityRules
from app.schemas.answers import Hdi, Score, Summary
from tests.formats.answers import AGE, WEIGHT, WIDE, answer, reliability, score
from tests.samples import a_card

MAN = Patient(55.9, Sex.MALE, 176.0, 84.0)
BOY = Patient(9.0, Sex.MALE, 135.0, 30.0)
UNCERTAIN = Tails(0.34, 0.0)
FINDINGS: dict[Verdict, tuple[Finding, ...]] = {"ok": (), "caution": (WIDE,), "not_reliable": (WEIGHT, AGE)}


def summary_of(
    verdict: Verdict = "ok", tails: Tails = UNCERTAIN, with_error: Tails | None = None, *, site: str = "SoV",
    simulated: bool = False, shown: Score | None = None, withheld: bool = False, patient: Patient = MAN,
) -> Summary:  # fmt: skip
    given_score = None if withheld else shown or score()
    query, found = ScoreQuery(patient, 41.0, measurement_sd_mm=1.0), FINDINGS[verdict]
    judged = ScoredMeasurement(site, query, answer(given_score, reliability(verdict, *found)), tails, with_error, found)
    return summarise(judged, simulated=simulated)


def test_a_score_is_stated_in_millimetres_first() -> None:
    summary = summary_of()
    assert summary.clinician == (
        "In this 55-year-old man, the sinus of Valsalva measured 41 mm (expected 35.1 mm, 95% reference range 29.0 to "
        "41.2 mm), giving a normalcy score of 1.93 (95% interval 1.58 to 2.30); the probability of exceeding 2 is 34%."
    )
    assert summary.patient == (
        "The root of your aorta (the large artery that leaves the heart) measures 41 mm across. For people of your "
        "age, sex, height and weight, 35.1 mm is expected, and about 95 in 100 of them have a measurement between "
        "29.0 and 41.2 mm. On a scale where 0 is what is expected and most people score between -2 and 2, your score "
        "is estimated at 1.93; the estimated 95% range of the score is 1.58 to 2.30. The estimated chance that the "
        "score is above 2 is 34%."
    )


def test_the_effect_of_a_measurement_error_is_stated() -> None:
    summary = summary_of(with_error=Tails(0.42, 0.0))
    assert summary.clinician.endswith(
        "; allowing for the stated measurement error (SD 1 mm), the 95% interval is 1.58 to 2.30 and the probability "
        "of exceeding 2 is 42%."
    )
    assert summary.patient.endswith(
        "Allowing for a measurement error of about 1 mm, the estimated 95% range of the score is 1.58 to 2.30; the "
        "estimated chance that the score is above 2 is 42%."
    )


@pytest.mark.parametrize(("below", "is_stated"), [(0.0251, True), (0.985, True), (0.025, False)])
def test_the_lower_side_is_stated_where_it_bears_on_the_position(below: float, is_stated: bool) -> None:
    summary = summary_of(tails=Tails(0.001, below))
    assert (f"and that of being below -2 is {percent(below)}." in summary.clinician) == is_stated
    above = "The estimated chance that the score is above 2 is less than 1%"
    chances = f"{above}, and the estimated chance that it is below -2 is {percent(below)}."
    assert (chances in summary.patient) == is_stated
    assert (f"{above}." in summary.patient) != is_stated


def test_parents_read_about_their_child() -> None:
    summary = summary_of("not_reliable", withheld=True, patient=BOY)
    assert summary.clinician.endswith("measured at the sinus of Valsalva in this 9-year-old boy.")
    assert summary.patient.startswith("Your child is older than everyone in the comparison group, so no score is given")
    assert "For children of the same age, sex, height and weight" in summary_of(patient=BOY).patient


def test_another_interval_is_named_by_its_probability() -> None:
    summary = summary_of(shown=score("uncertain", Hdi(0.8, 1.7, 2.1, 0.4)))
    assert "(80% interval 1.70 to 2.10)" in summary.clinician
    assert "the estimated 80% range of the score is 1.70 to 2.10." in summary.patient
    assert "95% reference range" in summary.clinician


def test_a_site_of_ones_own_is_stated_by_its_name() -> None:
    summary = summary_of(site="Arch")
    assert "the site Arch measured 41 mm" in summary.clinician
    assert summary.patient.startswith("The site Arch measures 41 mm across.")


@pytest.mark.parametrize(
    ("verdict", "withheld"), [("ok", False), ("caution", False), ("not_reliable", False), ("not_reliable", True)]
)
@pytest.mark.req("REQ-041")
def test_an_evaluation_model_says_so_first(verdict: Verdict, withheld: bool) -> None:
    summary = summary_of(verdict, simulated=True, withheld=withheld)
    assert re.match(rf"{EVALUATION}[;:] [a-z]", summary.clinician)
    assert re.match(rf"{EVALUATION}\. [A-Z]", summary.patient)
    clinical = summary_of(verdict, withheld=withheld)
    assert "evaluation" not in (clinical.clinician + clinical.patient).lower()
    assert intended_use(simulated=True).startswith(EVALUATION)
    assert "evaluation" not in intended_use(simulated=False).lower()


def test_a_withheld_score_is_stated_with_the_deciding_reason_alone() -> None:
    summary = summary_of("not_reliable", withheld=True)
    assert summary.clinician == (
        "The patient is older than the oldest person in the training cohort, who was 85 years old, so no score is "
        "given for the 41 mm measured at the sinus of Valsalva in this 55-year-old man."
    )
    assert summary.patient == (
        "You are older than everyone in the comparison group, so no score is given for the 41 mm measured at the root "
        "of your aorta (the large artery that leaves the heart)."
    )


def test_an_unreliable_score_begins_with_the_warning() -> None:
    summary = summary_of("not_reliable")
    assert summary.clinician.startswith("Not reliable, because the patient is older than the oldest")
    assert summary.patient.startswith(
        "The numbers in this comparison are not reliable, because you are older than everyone"
    )
    assert summary_of("not_reliable", simulated=True).clinician.startswith(f"{EVALUATION}; not reliable, because")


def test_outside_the_training_cohort_the_model_would_expect_and_nobody_is_counted() -> None:
    summary = summary_of("not_reliable", patient=BOY)
    assert "(the model would expect 35.1 mm, 95% range 29.0 to 41.2 mm)" in summary.clinician
    assert (
        "For children of the same age, sex, height and weight, the model would expect 35.1 mm, with a range from 29.0 "
        "to 41.2 mm." in summary.patient
    )
    assert "in 100" not in summary.patient


def test_outside_the_training_range_nobody_is_counted_at_caution_either() -> None:
    judged = ScoredMeasurement(
        "SoV", ScoreQuery(MAN, 41.0), answer(score(), reliability("caution", WEIGHT)), UNCERTAIN, None, (WEIGHT,)
    )
    summary = summarise(judged, simulated=False)
    assert summary.clinician.startswith("Caution, because the weight is outside the range of the training cohort")
    assert "(the model would expect 35.1 mm, 95% range 29.0 to 41.2 mm)" in summary.clinician
    assert summary.patient.startswith(
        "Please note: this comparison may be less accurate than usual, because your weight is outside the range of "
        "the comparison group. "
    )
    assert "the model would expect 35.1 mm, with a range from 29.0 to 41.2 mm." in summary.patient
    assert "in 100" not in summary.patient
    assert "95% reference range" in summary_of("caution").clinician  # an imprecise score: such people were observed


@pytest.mark.parametrize(
    ("about", "words"),
    [("height", "height"), ("weight", "weight"), ("body mass index", "weight for your height")],
)
def test_a_body_too_far_outside_differs_in_words_from_one_that_is_scored(about: str, words: str) -> None:
    near = replace(WEIGHT, about=about)
    far = replace(near, verdict="not_reliable")
    assert plain_reason(near) == f"your {words} is outside the range of the comparison group"
    assert plain_reason(far) == f"your {words} is too far outside the range of the comparison group"
    withheld = answer(None, reliability("not_reliable", far))
    summary = summarise(
        ScoredMeasurement("SoV", ScoreQuery(MAN, 41.0), withheld, UNCERTAIN, None, (far,)), simulated=False
    )
    assert summary.patient.startswith(f"Your {words} is too far outside the range of the comparison group, so no score")


def test_a_score_withheld_for_its_width_alone_is_too_imprecise() -> None:
    wide = replace(WIDE, verdict="not_reliable")
    query = ScoreQuery(MAN, 41.0)
    withheld = answer(None, reliability("not_reliable", wide))
    summary = summarise(ScoredMeasurement("SoV", query, withheld, UNCERTAIN, None, (wide,)), simulated=False)
    assert (
        "the score is too imprecise for patients of this age, sex and body size, so no score is given"
        in summary.clinician.lower()
    )
    assert "the comparison is too uncertain for someone of your age and size, so" in summary.patient.lower()


def test_lengths_are_written_as_sent() -> None:
    query = ScoreQuery(MAN, 39.996, measurement_sd_mm=0.004)
    judged = ScoredMeasurement("SoV", query, answer(score(), reliability()), UNCERTAIN, UNCERTAIN, ())
    summary = summarise(judged, simulated=False)
    assert "measured 39.996 mm" in summary.clinician
    assert "measures 39.996 mm" in summary.patient
    assert "(SD 0.004 mm)" in summary.clinician
    assert "error of about 0.004 mm" in summary.patient
    assert error_as_given(1e-9) == "0.000000001"


def test_caution_does_not_speak_of_widths_beside_an_interval_of_another_score() -> None:
    summary = summary_of("caution", shown=score("within", Hdi(0.95, 0.31, 1.02, 0.71), 0.66))
    assert summary.clinician.startswith(
        "Caution, because the score is imprecise for patients of this age, sex and body size: in this 55-year-old man"
    )
    assert "wider than" not in summary.clinician
    assert summary.patient.startswith("Please note: this comparison may be less accurate than usual, because ")


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (18.0, "18-year-old woman"),
        (17.99, "17-year-old girl"),
        (2.0, "2-year-old girl"),
        (1.999, "23-month-old girl"),
        (1.9999, "2-year-old girl"),
        (0.083, "1-month-old girl"),
        (0.05, "newborn girl"),
        (0.0, "newborn girl"),
        (119.9, "119-year-old woman"),
    ],
)
def test_people_are_as_old_as_they_would_say(age: float, words: str) -> None:
    assert person(Patient(age, Sex.FEMALE, 100.0, 20.0)) == words


@given(st.floats(0, 1))
@example(0.0)
@example(0.01)
@example(0.99)
@example(0.995)
@example(1.0)
@pytest.mark.req("REQ-040")
def test_certainty_is_never_claimed(probability: float) -> None:
    shown = percent(probability)
    assert shown in ("<1%", ">99%") or 1 <= int(shown.removesuffix("%")) <= 99


@given(st.floats(-1e6, 1e6), st.floats(0.5, 0.99))
@example(-0.001, 0.95)
def test_numbers_are_written_plainly(expected: float, mass: float) -> None:
    text = summary_of(shown=score("within", Hdi(mass, expected - 1, expected + 1, 2.0), expected)).clinician
    assert "-0.00" not in text
    assert re.search(r"score of -?\d+\.\d\d \(\d\d(\.\d+)?% interval -?\d+\.\d\d to -?\d+\.\d\d\)", text)


def test_every_reason_of_a_verdict_has_words_for_patients() -> None:
    card, opposite = a_card(), Convention("inner", "mid-systole", "CT")
    middle = card.ranges.age_years_middle_98
    ages = (0.5 * (card.ranges.age_years.high + middle.high), 0.9 * middle.low, 0.0, 119.0)
    bodies = ((176.0, 75.0), (240.0, 340.0))
    judged = [
        (rules := ReliabilityRules(each)).assessment(
            rules.assess_one(OneMeasurement.of(ScoreQuery(Patient(age, sex, *body), 30.0, convention=taken)), w2, 99.9)
        )
        for age in ages
        for body in bodies
        for sex in Sex
        for taken in (opposite, card.convention)
        for w2 in (0.5, 9.9)
        for each in (card, _of_men(card))
    ]
    reasons = {(reason.code, reason.about): reason for one in judged for reason in one.findings}
    assert reasons.keys() == PLAIN_REASONS.keys()
    assert PATIENT_NOT_COVERED not in [plain_reason(reason) for reason in reasons.values()]


def _of_men(card: ModelCard) -> ModelCard:
    men = {"male": card.ranges.height_cm["male"]}, {"male": card.ranges.weight_kg["male"]}
    return replace(card, ranges=replace(card.ranges, height_cm=men[0], weight_kg=men[1]))
