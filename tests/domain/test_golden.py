import numpy as np

from app.domain.golden import OUTSIDE, SCORES, choose_golden_inputs
from app.domain.patient import Sex

RNG = np.random.default_rng(5)
AGE, MALE = RNG.uniform(5, 85, 300), RNG.integers(0, 2, 300).astype(float)
HEIGHT, WEIGHT = RNG.normal(170, 10, 300), RNG.normal(70, 10, 300)
CHOSEN = choose_golden_inputs(AGE, MALE, HEIGHT, WEIGHT, seed=7)


def test_the_choice_follows_the_seed_alone() -> None:
    assert choose_golden_inputs(AGE, MALE, HEIGHT, WEIGHT, seed=7) == CHOSEN
    assert choose_golden_inputs(AGE, MALE, HEIGHT, WEIGHT, seed=8) != CHOSEN


def test_ends_of_every_range_are_among_the_cases() -> None:
    ages = [item.patient.age_years for item in CHOSEN]
    heights = [item.patient.height_cm for item in CHOSEN]
    weights = [item.patient.weight_kg for item in CHOSEN]
    for column, values in ((AGE, ages), (HEIGHT, heights), (WEIGHT, weights)):
        assert {column.min(), column.max()} <= set(values)


def test_cases_spread_over_age_in_either_sex_and_lie_outside_too() -> None:
    assert len(CHOSEN) == 24
    for sex in Sex:
        ages = [item.patient.age_years for item in CHOSEN[:14] if item.patient.sex is sex]
        assert len(ages) == 7
        assert max(np.diff(sorted(ages))) < 30
    assert {item.patient for item in CHOSEN} >= set(OUTSIDE)


def test_every_score_is_used() -> None:
    assert {item.score for item in CHOSEN} == set(SCORES)


def test_a_cohort_of_one_sex_has_cases_too() -> None:
    only_men = choose_golden_inputs(AGE, np.ones_like(AGE), HEIGHT, WEIGHT, seed=7)
    assert len(only_men) == 17
