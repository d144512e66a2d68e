import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.limits import AGE, DIAMETER_FROM_SCHOOL_AGE, Limit
from app.domain.patient import Patient, Sex
from app.domain.query import Convention, ScoreQuery
from app.schemas.fields import request_limits
from app.schemas.requests import ScoreRequest
from app.schemas.validation import parse
from tests.schemas.bodies import FULL, SINGLE, Json, found, score_errors, without


def test_the_smallest_request_takes_every_default() -> None:
    patient = Patient(55.0, Sex.MALE, 176.0, 84.0)
    query = ScoreQuery(patient, 41.0, (2.0,), 0.95, 0.0, Convention(), include_unreliable=False)
    request = parse(ScoreRequest, SINGLE)
    assert (request.to_query(), request.model_version, request.subject) == (query, "current", "")


def test_every_field_is_read() -> None:
    assert set(FULL) == set(ScoreRequest.model_fields)
    patient = Patient(55.0, Sex.MALE, 176.0, 84.0)
    convention = Convention("inner", "mid-systole", "CT")
    query = ScoreQuery(patient, 41.0, (2.0, -2.0, 3.5), 0.9, 0.5, convention, include_unreliable=True)
    request = parse(ScoreRequest, FULL).for_site("AA")
    assert (request.site, request.query) == ("AA", query)
    assert (request.model_version, request.subject) == ("1.2.3", "case 7 / Zürich")


@pytest.mark.parametrize("sex", list(Sex))
def test_each_sex_is_read_as_itself(sex: Sex) -> None:
    assert parse(ScoreRequest, {**SINGLE, "sex": sex.value}).to_query().patient.sex is sex


def test_every_number_is_a_float_and_none_a_negative_zero() -> None:
    body = {**SINGLE, "age_years": -0.0, "diameter_mm": 4, "height_cm": 50, "weight_kg": 3, "thresholds": [-0.0, 1]}
    query = parse(ScoreRequest, {**body, "measurement_sd_mm": -0.0}).to_query()
    numbers = [query.patient.age_years, query.diameter_mm, query.measurement_sd_mm, *query.thresholds]
    assert all(type(number) is float for number in numbers)
    assert not any(number == 0.0 and math.copysign(1.0, number) < 0.0 for number in numbers)


NOT_NUMBERS: list[object] = [math.nan, True, False, None, "41", " 41 ", "4_1", [], [41], {}, {"mm": 41}]
NUMBER_FIELDS = ("age_years", "height_cm", "weight_kg", "diameter_mm", "hdi_probability", "measurement_sd_mm")


@pytest.mark.parametrize("field", NUMBER_FIELDS)
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
@pytest.mark.req("REQ-001")
def test_what_only_resembles_a_number_is_rejected(field: str, value: object) -> None:
    assert found(score_errors({**FULL, field: value})) == [("wrong_type", field)]


@pytest.mark.parametrize("field", ["age_years", "sex", "height_cm", "weight_kg", "diameter_mm"])
@pytest.mark.req("REQ-001")
def test_a_required_field_must_be_there(field: str) -> None:
    assert found(score_errors(without(FULL, field))) == [("missing", field)]


BY_FIELD = {limit.field: limit for limit in request_limits() if not limit.advisory and not limit.from_age_years}
THRESHOLD = BY_FIELD["thresholds[]"]
LIMITS = (AGE, DIAMETER_FROM_SCHOOL_AGE, BY_FIELD["hdi_probability"], BY_FIELD["measurement_sd_mm"])


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.field)
@pytest.mark.req("REQ-002")
def test_a_range_includes_its_ends_and_nothing_beyond(limit: Limit) -> None:
    assert not score_errors({**FULL, limit.field: limit.low} | ({"diameter_mm": 10} if limit is AGE else {}))
    assert not score_errors({**FULL, limit.field: limit.high})
    for beyond in (math.nextafter(limit.low, -math.inf), math.nextafter(limit.high, math.inf), 10**300, -math.inf):
        assert [error.field for error in score_errors({**FULL, limit.field: beyond})] == [limit.field]


@pytest.mark.parametrize(
    ("field", "value", "code", "path"),
    [
        ("sex", "Male", "not_a_choice", "sex"),
        ("sex", "other", "not_a_choice", "sex"),
        ("sex", 1, "wrong_type", "sex"),
        ("sex", None, "wrong_type", "sex"),
        ("thresholds", [], "too_short", "thresholds"),
        ("thresholds", [2.0] * 9, "too_long", "thresholds"),
        ("thresholds", 2.0, "wrong_type", "thresholds"),
        ("thresholds", None, "wrong_type", "thresholds"),
        ("thresholds", "2;3", "wrong_type", "thresholds"),
        ("thresholds", [2.0, True], "wrong_type", "thresholds[1]"),
        ("thresholds", [2.0, "3"], "wrong_type", "thresholds[1]"),
        ("thresholds", [10.1], "out_of_range", "thresholds[0]"),
        ("thresholds", [0, 0, -10.1], "out_of_range", "thresholds[2]"),
        ("convention", "leading", "wrong_type", "convention"),
        ("convention", None, "wrong_type", "convention"),
        ("convention", {"edge": "middle"}, "not_a_choice", "convention.edge"),
        ("convention", {"modality": 3}, "wrong_type", "convention.modality"),
        ("convention", {"phase": None}, "wrong_type", "convention.phase"),
        ("convention", {"colour": "red"}, "unknown_field", "convention.(unknown)"),
        ("include_unreliable", "true", "wrong_type", "include_unreliable"),
        ("include_unreliable", 1, "wrong_type", "include_unreliable"),
        ("include_unreliable", None, "wrong_type", "include_unreliable"),
        ("subject", "", "too_short", "subject"),
        ("subject", "x" * 129, "too_long", "subject"),
        ("subject", "a\x00b", "control_character", "subject"),
        ("subject", "a\x85b", "control_character", "subject"),
        ("subject", 7, "wrong_type", "subject"),
        ("subject", None, "wrong_type", "subject"),
        ("model_version", "", "too_short", "model_version"),
        ("model_version", "1" * 65, "too_long", "model_version"),
        ("model_version", 1.0, "wrong_type", "model_version"),
        ("diamter_mm", 41, "unknown_field", "(unknown)"),
        ("site", "SoV", "unknown_field", "(unknown)"),
    ],
)
@pytest.mark.req("REQ-001")
def test_a_wrong_field_is_named_with_its_code(field: str, value: object, code: str, path: str) -> None:
    assert found(score_errors({**FULL, field: value})) == [(code, path)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("thresholds", [2.0]),
        ("thresholds", [2, 2, -10, 10, 0, 0, 0, 0]),
        ("convention", {}),
        ("subject", "x"),
        ("subject", "x" * 128),
        ("subject", "日本語 \N{PILE OF POO}"),
        ("model_version", "current"),
        ("include_unreliable", False),
    ],
)
def test_what_is_allowed_is_taken(field: str, value: object) -> None:
    assert score_errors({**FULL, field: value}) == ()


@pytest.mark.parametrize("body", [None, True, 3, 2.5, "text", [], [SINGLE]])
def test_a_body_that_is_no_object_has_one_error(body: object) -> None:
    assert found(score_errors(body)) == [("wrong_type", "")]


@pytest.mark.req("REQ-004")
def test_every_error_is_reported_at_once() -> None:
    body: Json = {
        "sex": "unknown",
        "height_cm": "tall",
        "weight_kg": 900,
        "diameter_mm": 400,
        "thresholds": [99, "x"],
        "hdi_probability": 1,
        "measurement_sd_mm": -1,
        "convention": {"edge": "x", "phase": 1, "side": "left"},
        "model_version": "",
        "include_unreliable": "no",
        "subject": "\n",
        "note": "x",
    }
    assert set(found(score_errors(body))) == {
        ("unknown_field", "(unknown)"),
        ("missing", "age_years"),
        ("not_a_choice", "sex"),
        ("wrong_type", "height_cm"),
        ("out_of_range", "weight_kg"),
        ("out_of_range", "diameter_mm"),
        ("out_of_range", "thresholds[0]"),
        ("wrong_type", "thresholds[1]"),
        ("out_of_range", "hdi_probability"),
        ("out_of_range", "measurement_sd_mm"),
        ("unknown_field", "convention.(unknown)"),
        ("not_a_choice", "convention.edge"),
        ("wrong_type", "convention.phase"),
        ("too_short", "model_version"),
        ("wrong_type", "include_unreliable"),
        ("control_character", "subject"),
    }


def test_an_empty_object_lacks_what_is_required_and_nothing_else() -> None:
    lacking = ["age_years", "sex", "height_cm", "weight_kg", "diameter_mm"]
    assert found(score_errors({})) == [("missing", field) for field in lacking]


@pytest.mark.req("REQ-007")
def test_the_rejection_of_a_sex_asks_for_the_reference() -> None:
    for body in ({**SINGLE, "sex": "diverse"}, {**SINGLE, "sex": 0}, without(SINGLE, "sex")):
        (error,) = score_errors(body)
        assert "choose the sex of the reference group" in error.message
        assert error.message.startswith("sex is required: " if "sex" not in body else "sex must be ")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("age", "age_years"),
        ("heigth_cm", "height_cm"),
        ("Weight", "weight_kg"),
        ("diameterMm", "diameter_mm"),
        ("measurement_sd", "measurement_sd_mm"),
        ("SEX", "sex"),
    ],
)
def test_an_unknown_field_is_compared_with_one_of_ours_and_not_repeated(written: str, meant: str) -> None:
    (error, *_) = score_errors({**without(SINGLE, meant), written: 1})
    assert error.code == "unknown_field"
    assert f"1 unknown field. Did you mean {meant}? Allowed fields: " in error.message
    assert not re.search(rf"\b{written}\b", error.message)


@pytest.mark.parametrize("written", ["surname_of_the_patient", "", "x" * 10_000, "diameter"])
def test_what_is_like_nothing_that_is_lacking_gets_no_suggestion(written: str) -> None:
    (error,) = score_errors({**SINGLE, written: 1})
    assert "Did you mean" not in error.message


def test_many_unknown_fields_are_not_all_compared() -> None:
    (error,) = score_errors({**SINGLE, **{f"x{k}": 1 for k in range(8)}, "threshold": 1})
    assert "9 unknown fields. Allowed fields: " in error.message


def test_a_message_names_the_field_the_unit_and_the_range() -> None:
    (error,) = score_errors({**SINGLE, "weight_kg": 351, "height_cm": 250})
    assert all(part in error.message for part in ("weight_kg", "1.5", "350", "kg"))


@given(st.permutations(list(FULL.items())), st.dictionaries(st.sampled_from(sorted(FULL)), st.none(), max_size=3))
def test_errors_do_not_depend_on_the_order_of_the_fields(items: list[tuple[str, Any]], nulls: Json) -> None:
    assert score_errors({**dict(items), **nulls}) == score_errors({**FULL, **nulls})


@given(
    age=st.floats(5, 120),
    height=st.floats(150, 200),
    weight=st.floats(45, 150),
    diameter=st.floats(10, 120),
    thresholds=st.lists(st.floats(THRESHOLD.low, THRESHOLD.high), min_size=1, max_size=8),
)
def test_every_plausible_number_is_taken_as_it_is(
    age: float, height: float, weight: float, diameter: float, thresholds: list[float]
) -> None:
    body = {**SINGLE, "age_years": age, "height_cm": height, "weight_kg": weight, "diameter_mm": diameter}
    query = parse(ScoreRequest, {**body, "thresholds": thresholds}).to_query()
    assert query == ScoreQuery(Patient(age, Sex.MALE, height, weight), diameter, tuple(thresholds))


@pytest.mark.parametrize(("age_years", "seen"), [(130, True), (1e300, True), (120, True), (4, False), (-1, False)])
def test_an_age_that_is_too_high_does_not_hide_a_diameter_that_is_too_small(age_years: float, seen: bool) -> None:
    """Above the range of ages the larger minimum applies all the same; below it nothing is known."""
    found = {error.field: error for error in score_errors({**SINGLE, "age_years": age_years, "diameter_mm": 4.1})}
    assert ("age_years" in found) is not (0 <= age_years <= 120)
    assert ("diameter_mm" in found) is seen
    if seen:
        assert (found["diameter_mm"].code, "10 to 120 (mm) from age 5 on" in found["diameter_mm"].message) == (
            "given_in_cm",
            True,
        )


def test_each_diameter_is_reported_once_where_the_age_is_too_high() -> None:
    for diameter, code in ((2, "given_in_cm"), (121, "out_of_range"), ("x", "wrong_type")):
        found = score_errors({**SINGLE, "age_years": 121, "diameter_mm": diameter})
        assert [(error.field, error.code) for error in found] == [("age_years", "out_of_range"), ("diameter_mm", code)]
