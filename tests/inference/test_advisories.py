import re
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from app.domain.patient import Patient, Sex
from app.domain.query import Convention, MeasurementColumns, OneMeasurement, ScoreQuery
from app.domain.score import Verdict
from app.inference.advisories import advise, advise_one, advisories
from app.schemas.answers import Advisory
from tests.samples import LEADING

QUESTION = ScoreQuery(Patient(45.0, Sex.MALE, 175.0, 75.0), 36.0, convention=LEADING)
HEAVY = Patient(45.0, Sex.MALE, 175.0, 153.2)  # 50.02 kg/m²


def advised(query: ScoreQuery, expected_ns: float, verdict: Verdict, withheld: bool = False) -> tuple[Advisory, ...]:
    """By columns; a single measurement with floats must get the same."""
    unreliable, measured = verdict == "not_reliable", MeasurementColumns.of([query])
    [key] = advise(measured, np.array([expected_ns]), np.array([unreliable]), np.array([withheld])).tolist()
    assert advise_one(OneMeasurement.of(query), expected_ns, unreliable=unreliable, withheld=withheld) == key
    return advisories(key)


def codes(query: ScoreQuery, expected_ns: float = 0.5, withheld: bool = False) -> list[str]:
    return [advisory.code for advisory in advised(query, expected_ns, "ok", withheld)]


def test_an_ordinary_reading_gets_no_advisory() -> None:
    assert codes(QUESTION) == []


@pytest.mark.parametrize(
    ("age", "diameter", "expected"),
    [(45.0, 39.99, []), (45.0, 40.0, ["absolute_diameter"]), (18.0, 40.0, ["absolute_diameter"]), (17.99, 60.0, [])],
)
@pytest.mark.req("REQ-035")
def test_adults_get_the_advisory_on_absolute_size_from_40_mm(age: float, diameter: float, expected: list[str]) -> None:
    patient = replace(QUESTION.patient, age_years=age)
    assert codes(replace(QUESTION, patient=patient, diameter_mm=diameter)) == expected


@pytest.mark.parametrize("convention", [Convention(), Convention("leading"), replace(LEADING, modality=None)])
@pytest.mark.req("REQ-033")
def test_a_convention_that_is_not_fully_stated_is_asked_for(convention: Convention) -> None:
    (advisory,) = advised(replace(QUESTION, convention=convention), 0.5, "ok")
    assert (advisory.code, advisory.field) == ("convention_not_stated", "convention")
    assert "modality" in advisory.message
    assert ("about 3 mm smaller" in advisory.message) == (convention.edge is None)
    assert ("edge" in advisory.message) == (convention.edge is None)


@pytest.mark.parametrize(
    ("expected_ns", "withheld", "expected"),
    [(6.0, False, []), (6.01, False, ["far_out"]), (-6.01, False, ["far_out"]), (6.01, True, [])],
)
@pytest.mark.req("REQ-036")
def test_a_score_beyond_6_asks_to_confirm_unless_it_is_withheld(
    expected_ns: float, withheld: bool, expected: list[str]
) -> None:
    assert codes(QUESTION, expected_ns, withheld) == expected


@pytest.mark.parametrize(
    ("diameter", "expected_ns", "words"),
    [
        (48.0, 7.0, "Diameters of this size do occur."),
        (95.0, 20.0, "and diameters of this size are rare."),
        (11.0, -7.0, "this narrow"),
    ],
)
def test_a_plausible_diameter_is_not_called_a_mistake(diameter: float, expected_ns: float, words: str) -> None:
    child = replace(QUESTION, patient=replace(QUESTION.patient, age_years=17.0), diameter_mm=diameter)
    (advisory,) = advised(child, expected_ns, "caution")
    assert words in advisory.message
    assert advisory.message.endswith("If the value is unexpected, check the measurement and its unit (mm).")
    assert ("Diameters of this size do occur." in advisory.message) == (diameter == 48.0)


@pytest.mark.parametrize("expected_ns", [-7.0, 7.0])
def test_nothing_is_called_rare_among_people_whom_the_model_does_not_cover(expected_ns: float) -> None:
    """7 mm is what many newborns have, and below -6 by a model that begins at 5 years."""
    verdict: Verdict = "not_reliable"
    newborn = replace(QUESTION, patient=Patient(0.0, Sex.FEMALE, 50.0, 3.4), diameter_mm=7.0)
    (advisory,) = advised(newborn, expected_ns, verdict)
    assert advisory.message == (
        "The score is beyond ±6. If the value is unexpected, check the measurement and its unit (mm)."
    )


def test_the_definition_by_absolute_size_is_named() -> None:
    (advisory,) = advised(replace(QUESTION, diameter_mm=45.0), 1.0, "ok")
    assert advisory.message == (
        "The diameter is 40 mm or more. Guidelines for adults also define dilatation of the aortic root and the "
        "ascending aorta by absolute size, from 40 mm; these definitions apply whatever the score is."
    )


def test_no_advisory_names_a_disease_but_for_what_guidelines_define_by_absolute_size() -> None:
    for diameter in (9.0, 48.0, 95.0):
        for expected_ns in (-7.0, 0.0, 7.0):
            for verdict in get_args(Verdict):
                found = advised(replace(QUESTION, diameter_mm=diameter), expected_ns, verdict)
                named = [re.findall(r"define dilatation|aneurysm|dilat|ectasia", each.message, re.I) for each in found]
                assert [word for words in named for word in words] == ["define dilatation"] * (diameter >= 40.0)


def test_a_very_high_bmi_of_an_adult_asks_for_pounds() -> None:
    assert codes(replace(QUESTION, patient=HEAVY)) == ["bmi_high"]
    assert codes(replace(QUESTION, patient=replace(HEAVY, weight_kg=153.0))) == []
    assert codes(replace(QUESTION, patient=replace(HEAVY, age_years=17.0))) == []
