"""The reliability map: each cell is what a request for such a person finds, and the body sizes are as stated."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from app.domain.card import BmiCurve
from app.domain.patient import Patient, Sex, bmi_kg_m2, haycock_bsa_m2
from app.domain.query import ScoreQuery
from app.inference.median_bmi import FROM_CARD, FROM_TABLE, PUBLISHED, known_tables, median_bmi, median_bmi_curves
from app.inference.reference_curves import height_of, reliability_map
from app.inference.scoring import score
from app.training.cohort import simulate_cohort, to_csv
from tests.samples import a_card, a_loaded_model


@pytest.mark.parametrize("diameter_mm", [None, 32.0])
def test_a_cell_is_what_a_request_for_such_a_person_finds(diameter_mm: float | None) -> None:
    model = a_loaded_model()
    grid = reliability_map(model, Sex.FEMALE, diameter_mm)
    for row, column in ((0, 0), (12, 20), (29, 39), (20, 5)):
        height, weight = grid.height_cm[row][column], grid.weight_kg[row][column]
        assert haycock_bsa_m2(height, weight) == pytest.approx(grid.bsa_m2[row])
        assert bmi_kg_m2(height, weight) == pytest.approx(grid.median_bmi_kg_m2[column])
        patient = Patient(grid.age_years[column], Sex.FEMALE, height, weight)
        [answer] = score(model, [ScoreQuery(patient, diameter_mm or 35.0, include_unreliable=True)])
        assert grid.verdict[row][column] == answer.reliability.verdict
        assert answer.score is not None
        width = answer.reliability.context_hdi_width if diameter_mm is None else answer.score.hdi.width
        assert grid.width[row][column] == pytest.approx(width, rel=1e-6)


def test_a_card_with_the_medians_of_its_cohort_is_drawn_at_them() -> None:
    model = a_loaded_model()
    card = replace(model.card, median_bmi={"male": BmiCurve((20.0, 60.0), (21.0, 25.0))})
    grid = reliability_map(replace(model, stored=replace(model.stored, card=card)), Sex.MALE)
    assert grid.bmi_source == FROM_CARD
    assert grid.median_bmi_kg_m2 == pytest.approx([21 + min(max(age - 20, 0), 40) / 10 for age in grid.age_years])
    assert median_bmi(card, Sex.FEMALE).source == PUBLISHED  # nobody of this sex in the cohort's medians


def test_the_height_gives_the_body_surface_area_at_the_body_mass_index() -> None:
    bsa, bmi = np.array([0.7, 1.5, 2.3]), np.array([15.0, 22.0, 29.0])
    height = height_of(bsa, bmi)
    assert haycock_bsa_m2(height, bmi * (height / 100) ** 2) == pytest.approx(bsa)


def test_the_medians_of_the_shipped_cohort_are_those_of_its_table_made_again() -> None:
    people = simulate_cohort(1110, 1)
    [(digest, stored)] = known_tables().items()
    assert hashlib.sha256(to_csv(people).encode()).hexdigest() == digest
    found = median_bmi_curves(people.age_years, people.male, people.height_cm, people.weight_kg)
    assert found == stored


def test_a_cohort_whose_medians_are_not_known_gets_published_ones_and_says_so() -> None:
    card = a_card()
    found = median_bmi(card, Sex.MALE)
    assert found.source == PUBLISHED
    assert found.at(np.array([45.0]))[0] == pytest.approx(np.exp(3.2395), rel=1e-3)  # NHANES at 45 years
    known = replace(card, cohort=replace(card.cohort, table_sha256=next(iter(known_tables()))))
    assert median_bmi(known, Sex.MALE).source == FROM_TABLE.format(known.cohort.table_sha256[:12])
