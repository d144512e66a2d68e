from dataclasses import astuple, replace

import numpy as np
import pytest

from app.domain.patient import Patient, Sex, covariates
from app.domain.query import Convention, ScoreQuery
from app.formats.rounding import rounded, significant
from app.inference.scoring import score, score_with_tails
from app.schemas.answers import Answer, Reference, Score
from tests.samples import LEADING, a_loaded_model
from tests.services.reference import Exactly

MODEL = a_loaded_model()
NINE_DIGITS = 5.1e-9  # relative error of a number that was rounded to nine digits
MAN = Patient(45.0, Sex.MALE, 175.0, 75.0)
WOMAN = Patient(30.0, Sex.FEMALE, 165.0, 60.0)
CHILD = Patient(9.0, Sex.FEMALE, 130.0, 27.0)
TODDLER = Patient(3.0, Sex.MALE, 102.0, 21.0)  # younger than every training person
ASKED = ScoreQuery(MAN, 38.0, convention=LEADING)


def one(query: ScoreQuery) -> Answer:
    (answer,) = score(MODEL, [query])
    return answer


def given(answer: Answer) -> tuple[Score, Reference]:
    assert answer.score is not None
    assert answer.reference is not None
    return answer.score, answer.reference


def exactly(query: ScoreQuery, error_variance: float = 0.0) -> Exactly:
    m = MODEL.executor.predict(covariates([query.patient], "log"))
    return Exactly(query.diameter_mm, float(m.m1[0]), float(m.v1[0]) + error_variance, float(m.m2[0]), float(m.v2[0]))


@pytest.mark.parametrize("patient", [MAN, WOMAN, CHILD])
@pytest.mark.parametrize("diameter", [22.0, 33.0, 41.0, 55.0])
@pytest.mark.req("REQ-021")
def test_every_number_is_the_contracts(patient: Patient, diameter: float) -> None:
    query = ScoreQuery(patient, diameter, thresholds=(2.0, -1.0, 3.5), hdi_probability=0.9, include_unreliable=True)
    found, reference = given(one(query))
    truth = exactly(query)
    assert found.expected_ns == pytest.approx(truth.score(), rel=NINE_DIGITS)
    assert [e.threshold for e in found.exceedance] == [2.0, -1.0, 3.5]
    for e in found.exceedance:
        assert e.probability_below == pytest.approx(truth.below(e.threshold), rel=NINE_DIGITS, abs=1e-10)
        assert e.probability + e.probability_below == pytest.approx(1.0, abs=1e-9)
    assert truth.below(found.hdi.high) - truth.below(found.hdi.low) == pytest.approx(0.9, abs=1e-7)
    assert truth.density(found.hdi.high) == pytest.approx(truth.density(found.hdi.low), rel=1e-5)
    assert found.hdi.width == pytest.approx(found.hdi.high - found.hdi.low, rel=1e-7)
    assert reference.expected_diameter_mm == significant(truth.m1)
    assert reference.expected_diameter_sd_mm**2 == pytest.approx(truth.v1)
    assert np.log(reference.aleatoric_sd_mm) == pytest.approx(truth.m2)
    assert reference.aleatoric_sd_log_se**2 == pytest.approx(truth.v2)
    assert truth.reading_below(reference.interval_mm.high) == pytest.approx(0.975, abs=1e-9)
    assert truth.reading_below(reference.interval_mm.low) == pytest.approx(0.025, abs=1e-9)
    assert reference.percentile == pytest.approx(100 * truth.reading_below(diameter), rel=NINE_DIGITS, abs=1e-8)
    for at in reference.diameter_at_threshold_mm:
        for value, p in ((at.median, 0.5), (at.low, 0.025), (at.high, 0.975)):
            assert truth.threshold_diameter_below(at.threshold, value) == pytest.approx(p, abs=1e-7)


@pytest.mark.req("REQ-023")
def test_a_single_answer_equals_its_place_in_any_batch() -> None:
    people = [MAN, WOMAN, CHILD, TODDLER]
    cuts = [((2.0,), 0.95), ((2.0, 3.0), 0.95), ((2.0,), 0.5), ((2.0,), 0.95)]
    queries = [
        ScoreQuery(people[k % 4], 25.0 + k, *cuts[k % 3], measurement_sd_mm=k % 2 * 1.5, include_unreliable=k % 5 > 0)
        for k in range(24)
    ]
    for query, answer in zip(queries, score(MODEL, queries), strict=True):
        alone, in_batch = flat(one(query)), flat(answer)
        assert alone.keys() == in_batch.keys()
        for name, value in alone.items():
            assert in_batch[name] == (pytest.approx(value, rel=1e-8, abs=1e-12) if isinstance(value, float) else value)


def test_the_smallest_measurement_error_counts_in_any_batch() -> None:
    tiny = replace(ASKED, measurement_sd_mm=1e-200)
    assert one(tiny).score_with_measurement_error is not None
    assert all(answer.score_with_measurement_error is not None for answer in score(MODEL, [tiny] * 8))


def flat(answer: Answer) -> dict[str, object]:
    def walk(value: object, name: str) -> dict[str, object]:
        parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
        if parts is None:
            return {name: value}
        return {key: leaf for k, part in parts for key, leaf in walk(part, f"{name}.{k}").items()}

    return walk(rounded(answer), "answer")


def test_no_question_has_no_answer() -> None:
    assert score(MODEL, []) == []


def test_the_answer_has_the_names_and_the_order_of_the_contract() -> None:
    plain = rounded(one(replace(ASKED, measurement_sd_mm=1.0)))
    assert list(plain) == [
        "score", "score_with_measurement_error", "reference", "comparators", "reliability", "advisories",
    ]  # fmt: skip
    assert list(plain["score"]) == ["expected_ns", "hdi", "exceedance", "position"]
    assert list(plain["score"]["hdi"]) == ["probability", "low", "high", "width"]
    assert list(plain["score"]["exceedance"][0]) == ["threshold", "probability", "probability_below"]
    assert list(plain["score_with_measurement_error"]) == ["hdi", "exceedance"]
    assert list(plain["reference"]) == [
        "expected_diameter_mm", "expected_diameter_sd_mm", "aleatoric_sd_mm", "aleatoric_sd_log_se", "interval_mm",
        "percentile", "diameter_at_threshold_mm",
    ]  # fmt: skip
    assert list(plain["reference"]["interval_mm"]) == ["probability", "low", "high"]
    assert list(plain["reference"]["diameter_at_threshold_mm"][0]) == ["threshold", "median", "low", "high"]
    assert list(plain["comparators"]) == [
        "linear_z", "altman_z", "diameter_per_bsa_mm_m2", "diameter_per_height_cm_m", "area_per_height_cm2_m",
        "not_applicable",
    ]  # fmt: skip
    assert list(plain["reliability"]) == ["verdict", "context_hdi_width", "context_hdi_width_percentile", "reasons"]


@pytest.mark.req("REQ-027")
def test_position_follows_both_probabilities_and_not_the_thresholds() -> None:
    seen = set()
    for diameter in np.arange(12.0, 60.0, 1.0).tolist():
        query = ScoreQuery(MAN, diameter, include_unreliable=True)
        found, _ = given(one(query))
        truth = exactly(query)
        above, below = 1.0 - truth.below(2.0), truth.below(-2.0)
        expected = (
            "above_2" if above >= 0.975
            else "below_minus_2" if below >= 0.975
            else "within" if above <= 0.025 and below <= 0.025
            else "uncertain"
        )  # fmt: skip
        assert found.position == expected
        (scored,) = score_with_tails(MODEL, [replace(query, thresholds=(0.0,))])
        assert scored.tails == pytest.approx((above, below), abs=1e-10)
        elsewhere, _ = given(one(replace(query, thresholds=(-7.0, 9.0))))
        assert elsewhere.position == expected
        seen.add(expected)
    assert seen == {"above_2", "below_minus_2", "within", "uncertain"}


def test_a_diameter_beyond_the_median_at_a_threshold_exceeds_it_with_more_than_half() -> None:
    _, reference = given(one(ASKED))
    median = reference.diameter_at_threshold_mm[0].median
    for diameter, exceeds in ((median + 1e-6, True), (median - 1e-6, False)):
        found, _ = given(one(replace(ASKED, diameter_mm=diameter)))
        assert (found.exceedance[0].probability > 0.5) == exceeds


def test_an_unreliable_score_is_withheld_whole() -> None:
    answer = one(ScoreQuery(TODDLER, 60.0, measurement_sd_mm=1.0))
    assert answer.reliability.verdict == "not_reliable"
    withheld = (answer.score, answer.score_with_measurement_error, answer.reference, answer.comparators)
    assert withheld == (None, None, None, None)
    assert answer.position == "not_assessed"
    assert [advisory.code for advisory in answer.advisories] == ["convention_not_stated"]


def test_who_asks_for_unreliable_numbers_gets_them_with_the_verdict() -> None:
    answer = one(ScoreQuery(TODDLER, 60.0, measurement_sd_mm=1.0, include_unreliable=True))
    assert answer.reliability.verdict == "not_reliable"
    assert None not in (answer.score, answer.score_with_measurement_error, answer.reference, answer.comparators)
    assert "far_out" in [advisory.code for advisory in answer.advisories]


@pytest.mark.req("REQ-034")
def test_reliability_does_not_depend_on_the_diameter_nor_on_how_the_answer_is_cut() -> None:
    usual = rounded(one(ASKED).reliability)
    for other in (
        replace(ASKED, diameter_mm=70.0),
        replace(ASKED, hdi_probability=0.6, thresholds=(0.0,)),
        replace(ASKED, measurement_sd_mm=5.0),
    ):
        assert rounded(one(other).reliability) == usual


def test_the_context_width_is_that_of_the_95_percent_interval_at_a_score_of_2() -> None:
    _, reference = given(one(ASKED))
    at_2 = reference.expected_diameter_mm + 2.0 * reference.aleatoric_sd_mm
    found, _ = given(one(replace(ASKED, diameter_mm=at_2)))
    assert one(ASKED).reliability.context_hdi_width == pytest.approx(found.hdi.width, rel=1e-7)


@pytest.mark.req("REQ-026")
def test_measurement_error_adds_its_own_score_and_changes_nothing_else() -> None:
    usual, with_error = one(ASKED), one(replace(ASKED, measurement_sd_mm=2.0))
    assert usual.score_with_measurement_error is None
    assert replace(with_error, score_with_measurement_error=None) == usual
    error_free = with_error.score_with_measurement_error
    assert error_free is not None
    truth = exactly(ASKED, error_variance=4.0)
    assert error_free.exceedance[0].probability_below == pytest.approx(truth.below(2.0), rel=NINE_DIGITS)
    assert truth.below(error_free.hdi.high) - truth.below(error_free.hdi.low) == pytest.approx(0.95, abs=1e-7)
    assert usual.score is not None
    assert error_free.hdi.width > usual.score.hdi.width


def test_only_the_readings_that_state_an_error_get_its_score() -> None:
    plain, stated = score(MODEL, [ASKED, replace(ASKED, measurement_sd_mm=1.0)])
    assert plain.score_with_measurement_error is None
    assert stated.score_with_measurement_error is not None


def test_the_tails_with_measurement_error_do_not_depend_on_the_thresholds() -> None:
    asked = replace(ASKED, measurement_sd_mm=2.0, thresholds=(0.5,))
    (scored,) = score_with_tails(MODEL, [asked])
    truth = exactly(ASKED, error_variance=4.0)
    expected = (1.0 - truth.below(2.0), truth.below(-2.0))
    assert scored.tails_with_measurement_error == pytest.approx(expected, abs=1e-10)


def test_comparators_are_the_contracts_formulas() -> None:
    found = one(ASKED).comparators
    assert found is not None
    expected_mm = 10.0 + 3.0 * np.log(45.0) + 2.0 + 0.05 * 175.0 + 0.06 * 75.0
    assert found.linear_z == pytest.approx((38.0 - expected_mm) / 3.0)
    assert found.altman_z == pytest.approx((38.0 - expected_mm) / (np.sqrt(np.pi / 2.0) * 2.4))
    assert found.diameter_per_bsa_mm_m2 == pytest.approx(38.0 / (0.024265 * 175.0**0.3964 * 75.0**0.5378))
    assert found.diameter_per_height_cm_m == pytest.approx(3.8 / 1.75)
    assert found.area_per_height_cm2_m == pytest.approx(np.pi * 1.9**2 / 1.75)
    assert found.not_applicable == ()


@pytest.mark.req("REQ-028")
def test_comparators_do_not_apply_outside_the_training_range() -> None:
    tall = Patient(45.0, Sex.MALE, 205.0, 90.0)
    found = one(ScoreQuery(tall, 38.0, include_unreliable=True)).comparators
    assert found is not None
    assert (found.linear_z, found.altman_z) == (None, None)
    assert [(n.code, n.field) for n in found.not_applicable] == [
        ("outside_training_range", "linear_z"),
        ("outside_training_range", "altman_z"),
    ]
    assert found.diameter_per_height_cm_m == pytest.approx(3.8 / 2.05)


@pytest.mark.parametrize("spread", [0.59, 0.0, -1.0])
def test_altman_does_not_apply_where_its_spread_is_not_credible(spread: float) -> None:
    """S is 3 mm; a quarter of it is an absolute residual of 0.598."""
    narrow = replace(MODEL.card.comparators, absolute_residual_coefficients=(spread, 0.0, 0.0, 0.0, 0.0))
    stored = replace(MODEL.stored, card=replace(MODEL.card, comparators=narrow))
    (answer,) = score(replace(MODEL, stored=stored), [ASKED])
    assert answer.comparators is not None
    assert answer.comparators.altman_z is None
    assert answer.comparators.linear_z is not None
    assert [n.field for n in answer.comparators.not_applicable] == ["altman_z"]


def test_two_differing_parts_of_the_convention_withhold_the_score() -> None:
    assert one(replace(ASKED, convention=Convention("inner", "end-diastole", "TTE"))).score is not None
    assert one(replace(ASKED, convention=Convention("inner", "end-diastole", "CT"))).score is None


@pytest.mark.parametrize("diameter", [3.0, 10.0, 34.0, 80.0, 120.0])
@pytest.mark.parametrize(
    "patient", [MAN, CHILD, TODDLER, Patient(0.0, Sex.FEMALE, 40.0, 1.5), Patient(120, Sex.MALE, 250, 350)]
)
@pytest.mark.req("REQ-022")
def test_every_number_is_finite_and_in_order_over_the_whole_allowed_range(patient: Patient, diameter: float) -> None:
    query = ScoreQuery(patient, diameter, (-10.0, 0.0, 10.0), 0.99, measurement_sd_mm=5.0, include_unreliable=True)
    answer = one(query)
    assert all(np.isfinite(value) for value in flat(answer).values() if isinstance(value, float))
    found, reference = given(answer)
    assert found.hdi.low <= found.hdi.high
    assert reference.interval_mm.low <= reference.interval_mm.high
    assert 0.0 <= reference.percentile <= 100.0
    assert all(at.low <= at.median <= at.high for at in reference.diameter_at_threshold_mm)
    assert all(0.0 <= p <= 1.0 for e in found.exceedance for p in astuple(e)[1:])
