from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.card import ModelCard, Range, ReliabilityLimits
from app.domain.patient import Patient, Sex
from app.domain.query import Convention, Edge, MeasurementColumns, Modality, OneMeasurement, Phase, ScoreQuery
from app.domain.score import Finding, deciding_finding
from app.inference.reliability_rules import Assessment, ReliabilityRules, width_percentile
from tests.samples import LEADING, a_card

CARD = a_card()
W2 = 0.6  # an ordinary width: the 30th percentile of the sample card
ORDINARY = Patient(45.0, Sex.MALE, 175.0, 75.0)


def reliability_rules(patient: Patient, convention: Convention, card: ModelCard, w2: float) -> Assessment:
    """By columns; a single measurement with floats must be judged alike."""
    rules, query = ReliabilityRules(card), ScoreQuery(patient, 30.0, convention=convention)
    percentile = rules.percentile(np.array([w2]))
    [key] = rules.assess(MeasurementColumns.of([query]), np.array([w2]), percentile).tolist()
    assert rules.assess_one(OneMeasurement.of(query), w2, percentile.item()) == key
    return rules.assessment(key)


def deciding_reason(assessment: Assessment) -> Finding | None:
    return deciding_finding(assessment.findings)


def verdict(patient: Patient = ORDINARY, convention: Convention = LEADING, w2: float = W2) -> tuple[str, list[str]]:
    reliability = reliability_rules(patient, convention, CARD, w2)
    return reliability.verdict, [reason.code for reason in reliability.reasons]


def test_an_ordinary_person_measured_as_the_training_people_is_ok() -> None:
    found = reliability_rules(ORDINARY, LEADING, CARD, W2)
    assert (found.verdict, found.reasons, found.findings) == ("ok", (), ())
    assert ReliabilityRules(CARD).percentile(np.array([W2])).item() == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("w2", "expected"),
    [
        (1.0, ("ok", [])),
        (1.0000001, ("caution", ["wide_interval"])),
        (1.2899, ("caution", ["wide_interval"])),
        (1.2901, ("caution", ["wide_interval", "sparse_context"])),
        (2.0, ("caution", ["wide_interval", "sparse_context"])),
        (2.0000001, ("not_reliable", ["wide_interval", "sparse_context"])),
    ],
)
def test_width(w2: float, expected: tuple[str, list[str]]) -> None:
    assert verdict(w2=w2) == expected


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (4.999, ("not_reliable", ["outside_training_range"])),
        (5.0, ("caution", ["edge_of_training_range"])),
        (6.999, ("caution", ["edge_of_training_range"])),
        (7.0, ("ok", [])),
        (80.0, ("ok", [])),
        (85.0, ("caution", ["edge_of_training_range"])),
        (85.001, ("not_reliable", ["outside_training_range"])),
    ],
)
def test_age(age: float, expected: tuple[str, list[str]]) -> None:
    assert verdict(replace(ORDINARY, age_years=age)) == expected


@pytest.mark.parametrize(
    ("patient", "expected"),
    [
        (Patient(45.0, Sex.MALE, 200.0, 80.0), "ok"),
        (Patient(45.0, Sex.MALE, 200.1, 80.0), "caution"),
        (Patient(45.0, Sex.MALE, 219.9, 90.0), "caution"),
        (Patient(45.0, Sex.MALE, 220.1, 90.0), "not_reliable"),
        (Patient(45.0, Sex.FEMALE, 195.0, 80.0), "caution"),
        (Patient(45.0, Sex.MALE, 99.0, 22.0), "caution"),
        (Patient(45.0, Sex.MALE, 89.9, 21.0), "not_reliable"),
        (Patient(45.0, Sex.MALE, 198.0, 110.5), "caution"),
        (Patient(45.0, Sex.MALE, 198.0, 121.1), "not_reliable"),
        (Patient(45.0, Sex.FEMALE, 185.0, 101.0), "caution"),
    ],
)
def test_height_and_weight_are_judged_by_the_range_of_the_sex(patient: Patient, expected: str) -> None:
    assert verdict(patient)[0] == expected


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (75.0, "ok"),
        (76.9, "caution"),
        (89.5, "caution"),
        (89.7, "not_reliable"),
        (35.7, "caution"),
        (22.9, "not_reliable"),
    ],
)
def test_bmi(weight: float, expected: str) -> None:
    """At 160 cm: 30 kg/m² is 76.8 kg, 35 is 89.6, 14 is 35.8, 9 is 23.0; all weights are inside the men's range."""
    assert verdict(replace(ORDINARY, height_cm=160.0, weight_kg=weight))[0] == expected


@pytest.mark.req("REQ-032")
def test_one_differing_part_of_the_convention_cautions_and_two_forbid() -> None:
    assert verdict(convention=Convention()) == ("ok", [])
    assert verdict(convention=Convention(edge="inner")) == ("caution", ["convention_differs"])
    assert verdict(convention=Convention("leading", "mid-systole", "TTE")) == ("caution", ["convention_differs"])
    assert verdict(convention=Convention("inner", None, "CT")) == ("not_reliable", ["convention_differs"])


def test_a_sex_that_was_never_trained_gets_no_score() -> None:
    men_only = replace(CARD.ranges, height_cm={"male": Range(150, 200)}, weight_kg={"male": Range(45, 110)})
    woman = Patient(45.0, Sex.FEMALE, 165.0, 60.0)
    assert reliability_rules(woman, LEADING, replace(CARD, ranges=men_only), W2).verdict == "not_reliable"


def test_the_limits_are_those_on_the_card() -> None:
    stricter = replace(CARD, reliability=ReliabilityLimits(width_caution=0.5, width_not_reliable=0.55))
    assert reliability_rules(ORDINARY, LEADING, stricter, W2).verdict == "not_reliable"


def test_messages_name_the_range_and_never_the_patients_value() -> None:
    reasons = reliability_rules(Patient(3.21, Sex.MALE, 232.1, 123.4), LEADING, CARD, 2.5).reasons
    text = " ".join(reason.message for reason in reasons)
    assert "younger than the youngest person in the training cohort, who was 5 years old" in text
    assert "100 to 200 cm" in text
    assert not any(value in text for value in ("3.21", "232.1", "123.4"))


def test_the_deciding_reason_leads_to_the_verdict_and_comes_before_its_consequences() -> None:
    # Not the wide interval, which follows from the age; not the weight, which alone would only be a caution.
    old = reliability_rules(Patient(90.0, Sex.MALE, 175.0, 112.0), Convention("inner", "mid-systole"), CARD, 2.5)
    assert old.reasons[0].code == "wide_interval"
    deciding = deciding_reason(old)
    assert deciding is not None
    assert deciding.about == "older"
    light = reliability_rules(replace(ORDINARY, weight_kg=35.0), Convention("inner", "mid-systole"), CARD, W2)
    deciding = deciding_reason(light)
    assert deciding is not None
    assert deciding.about == "convention"
    assert deciding_reason(reliability_rules(ORDINARY, LEADING, CARD, W2)) is None


@pytest.mark.parametrize(("high", "height"), [(110.3, 110.31), (199.16, 199.18), (183.0, 183.04)])
def test_a_size_outside_the_range_is_outside_the_printed_one(high: float, height: float) -> None:
    ranges = replace(CARD.ranges, height_cm={"male": Range(100.04, high), "female": Range(100.0, 190.0)})
    tall = replace(ORDINARY, height_cm=height, weight_kg=20.0 * (height / 100.0) ** 2)
    (reason,) = reliability_rules(tall, LEADING, replace(CARD, ranges=ranges), W2).reasons
    low_printed, high_printed = reason.message.removesuffix(" cm.").split(", ")[-1].split(" to ")
    assert float(low_printed) == 100.1
    assert high - 0.1 < float(high_printed) < height


def test_an_age_in_whole_years_does_not_contradict_the_range() -> None:
    ranges = replace(CARD.ranges, age_years=Range(0.75, 81.68))
    (old,) = reliability_rules(replace(ORDINARY, age_years=81.9), LEADING, replace(CARD, ranges=ranges), W2).reasons
    assert old.message == (
        "The patient is a little older than the oldest person in the training cohort, who was 81 years and 8 months "
        "old."
    )
    (older,) = reliability_rules(replace(ORDINARY, age_years=82.0), LEADING, replace(CARD, ranges=ranges), W2).reasons
    assert older.message == "The patient is older than the oldest person in the training cohort, who was 81 years old."
    infant = replace(ORDINARY, age_years=0.5)
    young = reliability_rules(infant, LEADING, replace(CARD, ranges=ranges), W2).reasons[0]
    assert young.message.endswith("who was 9 months old.")


@pytest.mark.parametrize(
    ("youngest", "age", "words"),
    [
        (
            5.07,
            5.0,
            "a little younger than the youngest person in the training cohort, who was 5 years and 1 month",
        ),
        (5.99, 5.0, "a little younger than the youngest person in the training cohort, who was 6 years old"),
        (0.79, 0.78, "a little younger than the youngest person in the training cohort, who was 10 months old"),
        (5.07, 4.9, " is younger than the youngest person in the training cohort, who was 5 years old"),
    ],
)
def test_nobody_is_younger_than_somebody_of_the_same_age(youngest: float, age: float, words: str) -> None:
    ranges = replace(CARD.ranges, age_years=Range(youngest, 81.68))
    child = replace(ORDINARY, age_years=age)
    assert words in reliability_rules(child, LEADING, replace(CARD, ranges=ranges), W2).reasons[0].message


@given(st.floats(0.0, 3.0), st.floats(0.0, 3.0))
def test_the_percentile_rises_with_the_width_and_agrees_with_numpy(one: float, other: float) -> None:
    quantiles = np.array(CARD.width_quantiles)
    low, high = sorted((one, other))
    assert 0.0 <= width_percentile(low, quantiles) <= width_percentile(high, quantiles) <= 100.0
    by_numpy = np.interp(one, quantiles, np.linspace(0.0, 100.0, 201))
    assert width_percentile(one, quantiles) == pytest.approx(by_numpy, abs=1e-9)


def test_the_percentile_of_equal_widths_is_finite() -> None:
    assert width_percentile(0.5, np.full(201, 0.5)) == 100.0
    assert width_percentile(0.49, np.full(201, 0.5)) == 0.0


patients = st.builds(Patient, st.floats(4, 90), st.sampled_from(Sex), st.floats(85, 225), st.floats(14, 130))
conventions = st.builds(
    Convention,
    st.sampled_from((None, *get_args(Edge))),
    st.sampled_from((None, *get_args(Phase))),
    st.sampled_from((None, *get_args(Modality))),
)


@given(patients, conventions, st.floats(0, 5))
@pytest.mark.req("REQ-030")
def test_the_verdict_is_the_contracts_table(patient: Patient, convention: Convention, w2: float) -> None:
    """The table once more, cell by cell, written without the code's helpers."""
    r, bmi = CARD.ranges, patient.weight_kg / (patient.height_cm / 100) ** 2
    h, w = r.height_cm[patient.sex], r.weight_kg[patient.sex]
    differing = sum(
        [
            convention.edge in ("inner", "outer"),
            convention.phase == "mid-systole",
            convention.modality in ("CT", "MR"),
        ]
    )
    forbidden = [
        w2 > 2,
        not 5 <= patient.age_years <= 85,
        not h.low * 0.9 <= patient.height_cm <= h.high * 1.1,
        not w.low * 0.9 <= patient.weight_kg <= w.high * 1.1,
        not r.bmi_kg_m2.low - 5 <= bmi <= r.bmi_kg_m2.high + 5,
        differing >= 2,
    ]
    cautious = [
        w2 > 1,
        np.interp(w2, CARD.width_quantiles, np.linspace(0, 100, 201)) > 99,
        not 7 <= patient.age_years <= 80,
        not h.low <= patient.height_cm <= h.high,
        not w.low <= patient.weight_kg <= w.high,
        not r.bmi_kg_m2.low <= bmi <= r.bmi_kg_m2.high,
        differing == 1,
    ]
    expected = "not_reliable" if any(forbidden) else "caution" if any(cautious) else "ok"
    found = reliability_rules(patient, convention, CARD, w2)
    assert found.verdict == expected
    assert (found.verdict == "ok") == (found.reasons == ())
    assert found.is_outside_training_range == any([forbidden[1], *cautious[3:6]])
