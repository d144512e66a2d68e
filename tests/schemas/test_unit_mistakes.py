"""A rejected number that a unit mistake explains gets a hint; nothing is corrected or rejected because of a hint."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.limits import BMI, BODY_MISTAKES, HEIGHT, WEIGHT, BodyMistake, body_mistakes
from app.domain.patient import bmi_kg_m2
from tests.schemas.bodies import SINGLE, found, score_errors, without


def body(height: float, weight: float) -> dict[str, object]:
    return {**SINGLE, "height_cm": height, "weight_kg": weight}


@pytest.mark.parametrize(
    ("height", "weight", "code", "field"),
    [
        (1.76, 84, "given_in_m", "height_cm"),
        (0.5, 3.4, "given_in_m", "height_cm"),
        (1.76, 250, "given_in_m", "height_cm"),
        (69, 84, "given_in_inches", "height_cm"),
        (69, 60, "given_in_inches", "height_cm"),
        (20, 3.4, "given_in_inches", "height_cm"),
        (5.9, 84, "given_in_feet", "height_cm"),
        (180, 400, "given_in_pounds", "weight_kg"),
        (150, 300, "given_in_pounds", "weight_kg"),
        (84, 176, "height_weight_exchanged", "height_cm"),
        (160, 9, "implausible_bmi", "weight_kg"),
        (250, 1.5, "implausible_bmi", "weight_kg"),
        (0, 84, "out_of_range", "height_cm"),
        (-176, 84, "out_of_range", "height_cm"),
        (1e300, 84, "out_of_range", "height_cm"),
        (176, -84, "out_of_range", "weight_kg"),
        (176, 1e300, "out_of_range", "weight_kg"),
    ],
)
def test_one_explanation_gives_its_code(height: float, weight: float, code: str, field: str) -> None:
    assert found(score_errors(body(height, weight))) == [(code, field)]


@pytest.mark.parametrize(
    ("height", "weight", "hints"),
    [
        (1.76, 84, ["given in m?"]),
        (69, 84, ["given in inches?"]),
        (180, 400, ["given in pounds?"]),
        (84, 176, ["exchanged?"]),
        (69, 185, ["given in inches and pounds?"]),
        (69, 150, ["given in inches and pounds?"]),
        (64, 168, ["given in inches and pounds?"]),
        (38, 32, ["given in inches and pounds?"]),
        (48, 50, ["given in inches and pounds?"]),
        (5.9, 185, ["given in feet and pounds?"]),
        (5.9, 84, ["given in feet?"]),
        (80, 176, ["exchanged?"]),
        (160, 9, []),
    ],
)
def test_the_likely_explanation_is_asked_about(height: float, weight: float, hints: list[str]) -> None:
    (error,) = score_errors(body(height, weight))
    assert error.message.count("?") == len(hints)
    assert all(hint in error.message for hint in hints)


@pytest.mark.parametrize(
    ("height", "weight", "codes"),
    [
        (1.76, -84, ["given_in_m", "out_of_range"]),
        (1.76, 1000, ["given_in_m", "out_of_range"]),
        (1.76, 700, ["given_in_m", "given_in_pounds"]),
        (1.76, 2, ["given_in_m"]),
        (0, 400, ["out_of_range", "given_in_pounds"]),
    ],
)
def test_what_nothing_explains_together_is_explained_by_itself(height: float, weight: float, codes: list[str]) -> None:
    errors = score_errors(body(height, weight))
    assert [error.code for error in errors] == codes
    assert [error.message.count("?") for error in errors] == [code.startswith("given") for code in codes]


@pytest.mark.parametrize("inches", range(58, 78))
@pytest.mark.parametrize("body_mass_index", [18.5, 22.0, 27.0, 33.0])
def test_an_adult_in_inches_and_pounds_gets_this_one_hint(inches: int, body_mass_index: float) -> None:
    pounds = round(body_mass_index * (0.0254 * inches) ** 2 / 0.45359237)
    (error,) = score_errors(body(inches, pounds))
    assert error.code == "given_in_inches_and_pounds"
    assert error.message.endswith("Were height and weight given in inches and pounds?")
    assert error.message.count("?") == 1


@pytest.mark.req("REQ-003")
def test_a_height_in_metres_is_noticed_without_a_weight() -> None:
    assert found(score_errors(without(body(1.76, 84), "weight_kg"))) == [
        ("given_in_m", "height_cm"),
        ("missing", "weight_kg"),
    ]


@pytest.mark.parametrize(
    ("age", "diameter", "code"),
    [
        (55, 4.1, "given_in_cm"),
        (5, 9.99, "given_in_cm"),
        (5, 10, None),
        (4.99, 9.99, None),
        (4.99, 3, None),
        (2, 1.8, "given_in_cm"),
        (55, 0, "out_of_range"),
        (55, -4.1, "out_of_range"),
        (55, 120.5, "out_of_range"),
    ],
)
@pytest.mark.req("REQ-003")
def test_a_diameter_below_its_range_looks_like_centimetres(age: float, diameter: float, code: str | None) -> None:
    errors = score_errors({**SINGLE, "age_years": age, "diameter_mm": diameter})
    assert found(errors) == ([(code, "diameter_mm")] if code else [])
    assert all(("given in cm?" in error.message) == (code == "given_in_cm") for error in errors)


def test_the_diameter_of_an_unknown_age_is_held_to_the_wider_range() -> None:
    assert found(score_errors({**without(SINGLE, "age_years"), "diameter_mm": 4.1})) == [("missing", "age_years")]


SIZES = st.floats(-10, 2000) | st.sampled_from([0.0, 1.76, 40.0, 250.0, 1.5, 350.0, 1e308, -1e308])


@given(SIZES, SIZES)
def test_a_body_is_rejected_exactly_for_its_ranges(height: float, weight: float) -> None:
    sizes_fit = HEIGHT.holds(height) and WEIGHT.holds(weight)
    fits = sizes_fit and BMI.holds(bmi_kg_m2(height, weight))
    assert (score_errors(body(height, weight)) == ()) == fits


@given(SIZES | st.just(math.nan), SIZES | st.just(math.nan))
def test_undoing_an_explanation_leads_to_a_possible_body(height: float, weight: float) -> None:
    for mistake in body_mistakes(height, weight):
        meant_height, meant_weight = mistake.undo(height, weight)
        assert math.isnan(meant_height) or HEIGHT.holds(meant_height)
        assert math.isnan(meant_weight) or WEIGHT.holds(meant_weight)
        bmi = bmi_kg_m2(meant_height, meant_weight)
        assert math.isnan(bmi) or BMI.holds(bmi)


@pytest.mark.parametrize("mistake", BODY_MISTAKES, ids=lambda mistake: mistake.code)
@pytest.mark.req("REQ-003")
def test_each_mistake_is_found_again_after_it_was_made(mistake: BodyMistake) -> None:
    made = {
        "given_in_m": (1.76, 84.0),
        "given_in_inches": (69.0, 84.0),
        "given_in_feet": (5.9, 84.0),
        "given_in_feet_and_pounds": (5.9, 185.0),
        "given_in_pounds": (176.0, 400.0),
        "given_in_inches_and_pounds": (69.0, 185.0),
        "height_weight_exchanged": (84.0, 176.0),
    }
    assert set(made) == {known.code for known in BODY_MISTAKES}
    assert mistake in body_mistakes(*made[mistake.code])
