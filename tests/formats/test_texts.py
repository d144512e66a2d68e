"""The texts of thousands of answers: their words, their numbers, and that nothing in them contradicts the answer."""

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from app.domain.patient import Patient, Sex, bmi_kg_m2
from app.domain.query import Convention, ScoreQuery
from app.domain.score import Position
from app.formats.summaries import EVALUATION, ScoredMeasurement, summarise
from app.inference.scoring import score_with_tails
from app.schemas.answers import Summary
from tests.formats.texts import CASES, GOLDEN, document, model, text_of

MEASUREMENTS = 6000
CUTS = (((2.0,), 0.95), ((1.0, 3.0), 0.8), ((-2.0,), 0.99))
TAKEN = (
    Convention(),
    Convention("leading", "end-diastole", "TTE"),
    Convention(modality="CT"),
    Convention("inner", "mid-systole", "MR"),
)

CLINICIAN_WORDS = """
    a about age allowing and aorta as ascending at because being below body boy care caution certain cm cohort
    differs edge end-diastole error evaluation exceeding expect expected for from girl given giving height imprecise
    in index interval is kg kg/m² leading less little man mass measured measurement mm modality model month
    month-old months more most newborn no normalcy not of old older oldest outside patient patients person phase
    probability range reference reliable score sd sex sinus size so stated than that the this those to too training
    tte valsalva was weight were who woman would year-old years young younger youngest
"""
PATIENT_WORDS = """
    a about above accurate across age allowing and aorta are artery as ascending at be because below between care
    chance child child's children comparison differently error estimated evaluation everyone expect expected far few
    for from given group have heart height in includes is it large leaves less like may measured measurement measures
    mm model more most no not note numbers of old older on outside part people please precise range reliable root same
    scale score sex size so someone taken than that the them this those to too uncertain usual was weight what where
    with would you young younger your
"""

N, P = r"(-?\d+(?:\.\d+)?)", r"(<1%|>99%|[1-9]\d?%)"
W = r"(less than 1%|more than 99%|[1-9]\d?%)"
CHANCES = (
    rf"[Tt]he estimated chance that the score is above 2 is {W}"
    rf"(?:, and the estimated chance that it is below -2 is {W})?"
)
CLINICIAN = re.compile(
    rf"[Ii]n this (.+), the (?:sinus of Valsalva|ascending aorta) measured {N} mm "
    rf"\((?:expected|the model would expect) {N} mm, 95% (?:reference )?range {N} to {N} mm\), "
    rf"giving a normalcy score of {N} \({N}% interval {N} to {N}\); "
    rf"the probability of exceeding 2 is {P}(?: and that of being below -2 is {P})?"
    rf"(?:; allowing for the stated measurement error \(SD {N} mm\), the {N}% interval is {N} to {N} and "
    rf"the probability of exceeding 2 is {P}(?: and that of being below -2 is {P})?)?\.$"
)
PATIENT = re.compile(
    rf"aorta \(the large artery that leaves the heart\) measures {N} mm across\. "
    rf"For (.+) age, sex, height and weight, (?:the model would expect )?{N} mm"
    rf"(?: is expected, and about 95 in 100 of them have a measurement between|, with a range from) "
    rf"{N} (?:and|to) {N} mm\. "
    rf"On a scale where 0 is what is expected and most people score between -2 and 2, your (?:child's )?score "
    rf"is estimated at {N}; the estimated {N}% range of the score is {N} to {N}\. {CHANCES}\."
    rf"(?: Allowing for a measurement error of about {N} mm, the estimated {N}% range of the score is {N} to {N}; "
    rf"{CHANCES}\.)?$"
)
OUTSIDE = re.compile(rf"the (height|weight|body mass index) is (more than {N}(?:%| kg/m²) )?outside .+?, {N} to {N} ")
AGE = re.compile(r"(a little )?(?:older|younger) than .+ was (?:(\d+) years?)?(?: and )?(?:(\d+) months?)? old")


class Written(NamedTuple):
    judged: ScoredMeasurement
    summary: Summary


def random_query(rng: np.random.Generator) -> ScoreQuery:
    """Half of them people like those of training, half anybody whom a request may describe."""
    usual = rng.random() < 0.5
    age = rng.uniform(5, 80) if usual else rng.uniform(0, 120)
    while True:
        height = rng.uniform(110, 195) if usual else rng.uniform(40, 250)
        weight = rng.uniform(15, 30) * (height / 100) ** 2 if usual else np.exp(rng.uniform(np.log(1.5), np.log(350)))
        if 8 <= bmi_kg_m2(height, weight) <= 100 and 1.5 <= weight <= 350:
            break
    thresholds, probability = CUTS[rng.integers(len(CUTS))]
    return ScoreQuery(
        Patient(float(age), Sex.MALE if rng.random() < 0.5 else Sex.FEMALE, float(height), float(weight)),
        float(np.clip(rng.normal(32, 9), 10, 120)),
        thresholds=thresholds,
        hdi_probability=probability,
        measurement_sd_mm=float(rng.uniform(0, 5)) if rng.random() < 0.5 else 0.0,
        convention=TAKEN[rng.integers(len(TAKEN))],
        include_unreliable=bool(rng.random() < 0.7),
    )


@cache
def everything() -> tuple[Written, ...]:
    rng = np.random.default_rng(11)
    found: list[Written] = []
    for site in ("SoV", "AA"):
        queries = [random_query(rng) for _ in range(MEASUREMENTS // 2)]
        for query, scored in zip(queries, score_with_tails(model(site), queries), strict=True):
            judged = ScoredMeasurement(site, query, *scored[:-1])
            found.append(Written(judged, summarise(judged, simulated=bool(rng.random() < 0.5))))
    return tuple(found)


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z²/'-]*[a-z²][a-z²/'-]*", re.sub(r"\d+-(?=month|year)", "", text.lower())))


def test_forty_patients_in_words_are_those_that_were_read() -> None:
    """After a change: python -m tests.formats.texts --update, and read every text."""
    assert document() == GOLDEN.read_text(encoding="utf-8")


def test_the_forty_are_varied() -> None:
    texts = [text_of(case) for case in CASES]
    assert len(texts) == 40
    positions: set[Position] = {"above_2", "below_minus_2", "within", "uncertain", "not_assessed"}
    assert {text.position for text in texts} == positions
    assert {text.verdict for text in texts} == {"ok", "caution", "not_reliable"}
    assert {case.site for case in CASES} == {"SoV", "AA"}
    codes = Counter(note.split("`")[1] for text in texts for note in (*text.reasons, *text.advisories))
    assert len(codes) == 9  # every reason and every advisory


def test_random_answers_are_of_every_kind() -> None:
    kinds = Counter((one.judged.answer.reliability.verdict, one.judged.answer.position) for one in everything())
    assert len(kinds) == 4 + 4 + 5
    assert min(kinds.values()) >= 3, kinds


@pytest.mark.req("REQ-040")
def test_every_word_is_an_allowed_one() -> None:
    said = {word for one in everything() for word in words(one.summary.clinician)}
    assert said <= words(CLINICIAN_WORDS)
    said = {word for one in everything() for word in words(one.summary.patient)}
    assert said <= words(PATIENT_WORDS)


def shown(tail: float, text: str) -> bool:
    """Whether the text is an honest rounding of the probability."""
    if text in ("<1%", ">99%"):
        return tail < 0.01 if text == "<1%" else tail > 0.99
    return abs(100 * tail - int(text.removesuffix("%"))) <= 0.5


def with_score() -> list[Written]:
    return [one for one in everything() if one.judged.answer.score]


@pytest.mark.req("REQ-042")
def test_both_texts_give_the_numbers_of_the_answer() -> None:
    for judged, summary in with_score():
        query, answer = judged.query, judged.answer
        score, reference, error_free = answer.score, answer.reference, answer.score_with_measurement_error
        assert score is not None
        assert reference is not None
        clinician, patient = CLINICIAN.search(summary.clinician), PATIENT.search(summary.patient)
        assert clinician, summary.clinician
        assert patient, summary.patient
        reliability = answer.reliability
        outside = any(reason.code == "outside_training_range" for reason in reliability.reasons)
        observed = reliability.verdict != "not_reliable" and not outside
        assert all(("model would expect" in text) != observed for text in (summary.clinician, summary.patient))
        assert ("95 in 100" in summary.patient) == observed
        assert ("95% reference range" in summary.clinician) == observed
        _, *digits = clinician.groups()
        measured, expected, low, high, ns, mass, hdi_low, hdi_high, above, below, sd, mass_again, *with_error = digits
        numbers = [query.diameter_mm, reference.expected_diameter_mm, reference.interval_mm.low]
        numbers += [reference.interval_mm.high, score.expected_ns, score.hdi.low, score.hdi.high]
        written = [measured, expected, low, high, ns, hdi_low, hdi_high]
        tolerances = [0.005, 0.05, 0.05, 0.05, 0.005, 0.005, 0.005]
        assert np.all(np.abs(np.array(numbers) - np.array(written, dtype=float)) <= np.array(tolerances) + 1e-9)
        assert float(mass) == pytest.approx(100 * score.hdi.probability)
        assert shown(judged.tails.above_2, above)
        assert below is None or shown(judged.tails.below_minus_2, below)
        assert (error_free is None) == (sd is None)
        if error_free:
            assert float(sd) == pytest.approx(query.measurement_sd_mm, abs=0.005)
            assert mass_again == mass
            ends = np.array(with_error[:2], dtype=float) - np.array([error_free.hdi.low, error_free.hdi.high])
            assert np.abs(ends).max() <= 0.005 + 1e-9
            asked = [each.probability for each in error_free.exceedance if each.threshold == 2.0]
            assert all(shown(tail, with_error[2]) for tail in asked)
        # The patient reads the same digits as the clinician.
        assert Counter(filter(None, digits)) == Counter(
            each.replace("less than ", "<").replace("more than ", ">")
            for k, each in enumerate(patient.groups())
            if each and k != 1
        )


@pytest.mark.req("REQ-042")
def test_the_probabilities_go_with_the_position() -> None:
    for judged, summary in with_score():
        found = CLINICIAN.search(summary.clinician)
        assert found is not None
        above, below = found.groups()[9:11]
        position = judged.answer.position
        assert (above in (">99%", "99%", "98%", "97%")) or position != "above_2"
        assert (above in ("<1%", "1%", "2%", "3%") and below is None) or position != "within"
        assert (below in (">99%", "99%", "98%", "97%")) or position != "below_minus_2"
        assert not (position == "uncertain" and (above == ">99%" or below == ">99%"))


def test_the_deciding_reason_comes_first_and_alone() -> None:
    for judged, summary in everything():
        reliability, text = judged.answer.reliability, summary.clinician
        reason = judged.deciding
        assert (reason is None) == (reliability.verdict == "ok")
        if reason is None:
            assert "because" not in text + summary.patient
            continue
        assert reason.verdict == reliability.verdict
        opening = text.removeprefix(EVALUATION).lstrip(":; ").lower()
        how = "too imprecise" if reliability.verdict == "not_reliable" else "imprecise"
        why = f"the score is {how} for patients of this age, sex and body size"
        why = why if reason.code == "wide_interval" else reason.message.rstrip(".").lower()
        if judged.answer.score is None:
            assert opening.startswith(f"{why}, so no score is given for the ")
            assert "interval" not in text
            assert "%" not in summary.patient
        else:
            word = {"caution": "caution", "not_reliable": "not reliable"}[reliability.verdict]
            assert opening.startswith(f"{word}, because {why}: in this ")
        others = [other.message.rstrip(".").lower() for other in judged.findings if other != reason]
        assert not any(other in text.lower() for other in others)


def test_what_is_said_of_age_and_body_is_true_of_the_printed_numbers() -> None:
    seen: Counter[str] = Counter()
    for judged, _ in everything():
        patient = judged.query.patient
        values = {"height": patient.height_cm, "weight": patient.weight_kg, "body mass index": patient.bmi_kg_m2}
        for reason in judged.findings:
            message = reason.message[:1].lower() + reason.message[1:]
            seen[reason.about] += 1
            if reason.about in ("older", "younger"):
                found = AGE.search(message)
                assert found, message
                other = int(found[2] or 0) + int(found[3] or 0) / 12
                own = patient.age_years if found[1] else int(patient.age_years)
                assert own > other if reason.about == "older" else own < other
                seen["little"] += bool(found[1])
            elif found := OUTSIDE.match(message):
                low, high = float(found[4]), float(found[5])
                assert not low <= values[found[1]] <= high
                assert (found[2] is not None) == (reason.verdict == "not_reliable")
            elif reason.about == "width":
                assert judged.answer.reliability.context_hdi_width > float(message.split()[-1].rstrip("."))
    assert {"older", "younger", "little", "height", "weight", "body mass index", "width", "old", "young"} <= set(seen)


def test_ages_are_whole_and_children_are_children() -> None:
    for judged, summary in everything():
        patient = judged.query.patient
        adult = patient.age_years >= 18
        who = re.search(r"this (?:(\d+)-(year|month)-old|newborn) (man|woman|boy|girl)", summary.clinician)
        assert who, summary.clinician
        assert who[3] in (("man", "woman") if adult else ("boy", "girl"))
        assert (who[3] in ("man", "boy")) == (patient.sex == Sex.MALE)
        completed = patient.age_years if who[2] == "year" else 12 * patient.age_years
        assert int(who[1] or 0) <= completed + 0.01 < int(who[1] or 0) + 1.011
        assert ("your child" in summary.patient) == (not adult)
        assert ("your aorta" in summary.patient) == adult


def test_an_evaluation_model_is_named_first_and_certainty_never_claimed() -> None:
    for _, summary in everything():
        texts = summary.clinician, summary.patient
        assert len({text.startswith(EVALUATION) for text in texts}) == 1
        for text in texts:
            assert text.count(EVALUATION) <= 1
            assert text[0].isupper()
            assert text.endswith(".")
            assert not re.search(r"  | %|(?<![\d.])(?:0|100)%|-0\.00(?!\d)|nan|inf\b", text), text
