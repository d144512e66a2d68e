from dataclasses import replace

import pytest

from app.domain.advisories import advise
from app.domain.convention import Convention
from app.domain.patient import Patient, Sex
from app.domain.query import ScoreQuery
from app.domain.score import Verdict
from tests.samples import LEADING

QUESTION = ScoreQuery(Patient(45.0, Sex.MALE, 175.0, 75.0), 36.0, convention=LEADING)
HEAVY = Patient(45.0, Sex.MALE, 175.0, 153.2)  # 50.02 kg/m²


def codes(query: ScoreQuery, expected_ns: float | None = 0.5) -> list[str]:
    return [advisory.code for advisory in advise(query, expected_ns, "ok")]


def test_an_ordinary_reading_gets_no_advisory() -> None:
    assert codes(QUESTION) == []


@pytest.mark.parametrize(
    ("age", "diameter", "expected"),
    [(45.0, 39.99, []), (45.0, 40.0, ["absolute_diameter"]), (18.0, 40.0, ["absolute_diameter"]), (17.99, 60.0, [])],
)
def test_absolute_size_is_told_to_adults_from_40_mm(age: float, diameter: float, expected: list[str]) -> None:
    patient = replace(QUESTION.patient, age_years=age)
    assert codes(replace(QUESTION, patient=patient, diameter_mm=diameter)) == expected


@pytest.mark.parametrize("convention", [Convention(), Convention("leading"), replace(LEADING, modality=None)])
def test_a_convention_that_is_not_fully_stated_is_asked_for(convention: Convention) -> None:
    (advisory,) = advise(replace(QUESTION, convention=convention), 0.5, "ok")
    assert (advisory.code, advisory.field) == ("convention_not_stated", "convention")
    assert "modality" in advisory.message
    assert ("about 3 mm smaller" in advisory.message) == (convention.edge is None)
    assert ("edge" in advisory.message) == (convention.edge is None)


@pytest.mark.parametrize(
    ("expected_ns", "expected"), [(6.0, []), (6.01, ["far_out"]), (-6.01, ["far_out"]), (None, [])]
)
def test_a_score_beyond_6_asks_to_confirm_unless_it_is_withheld(expected_ns: float | None, expected: list[str]) -> None:
    assert codes(QUESTION, expected_ns) == expected


@pytest.mark.parametrize(
    ("diameter", "expected_ns", "words"),
    [(48.0, 7.0, "Aneurysms of this size exist."), (95.0, 20.0, "few aneurysms"), (11.0, -7.0, "so narrow")],
)
def test_a_plausible_aneurysm_is_not_called_a_slip(diameter: float, expected_ns: float, words: str) -> None:
    child = replace(QUESTION, patient=replace(QUESTION.patient, age_years=17.0), diameter_mm=diameter)
    (advisory,) = advise(child, expected_ns, "caution")
    assert words in advisory.message
    assert advisory.message.endswith("If the value is unexpected, confirm the reading and its unit (mm).")
    assert ("Aneurysms of this size exist." in advisory.message) == (diameter == 48.0)


@pytest.mark.parametrize("expected_ns", [-7.0, 7.0])
def test_nothing_is_called_rare_among_people_whom_the_model_does_not_cover(expected_ns: float) -> None:
    """7 mm is what many newborns have, and below -6 by a model that begins at 5 years."""
    verdict: Verdict = "not_reliable"
    newborn = replace(QUESTION, patient=Patient(0.0, Sex.FEMALE, 50.0, 3.4), diameter_mm=7.0)
    (advisory,) = advise(newborn, expected_ns, verdict)
    assert advisory.message == (
        "The score lies beyond ±6. If the value is unexpected, confirm the reading and its unit (mm)."
    )


def test_the_definition_by_absolute_size_is_named() -> None:
    (advisory,) = advise(replace(QUESTION, diameter_mm=45.0), 1.0, "ok")
    assert "Guidelines for adults define dilatation" in advisory.message
    assert "40 mm" in advisory.message


def test_a_very_high_bmi_of_an_adult_asks_for_pounds() -> None:
    assert codes(replace(QUESTION, patient=HEAVY)) == ["bmi_high"]
    assert codes(replace(QUESTION, patient=replace(HEAVY, weight_kg=153.0))) == []
    assert codes(replace(QUESTION, patient=replace(HEAVY, age_years=17.0))) == []
