"""The table of codes is complete, and no error repeats what the caller sent."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import FieldError, MalformedJson
from app.formats import strict_json
from app.schemas import validation
from tests.formats.test_strict_json import HOSTILE
from tests.schemas.bodies import FULL, SINGLE, STUDY, Json, score_errors, study_errors

CANARY = "zq7Canary"
CANARY_NUMBER = 86753.09
CANARIES: list[Any] = [
    CANARY,
    CANARY_NUMBER,
    -CANARY_NUMBER,
    CANARY + "\x00",
    CANARY * 40,
    [CANARY, CANARY_NUMBER],
    [[CANARY]] * 9,
    {CANARY: CANARY},
    {"edge": CANARY, "site": CANARY, CANARY: CANARY_NUMBER},
]


def rejection(body: bytes) -> FieldError:
    with pytest.raises(MalformedJson) as raised:
        strict_json.loads(body)
    return raised.value.error


def as_text(found: tuple[FieldError, ...]) -> str:
    return json.dumps([(error.code, error.field, error.message) for error in found])


def assert_no_echo(text: str) -> None:
    assert CANARY not in text
    assert str(CANARY_NUMBER) not in text


def with_one_field(body: Json, value: object) -> Iterator[Json]:
    for name in body:
        yield {**body, name: value}
    yield {**body, CANARY: value}


@pytest.mark.parametrize("value", CANARIES, ids=lambda value: repr(value)[:30])
@pytest.mark.req("REQ-008")
def test_no_error_of_any_field_repeats_its_value(value: object) -> None:
    for body in with_one_field(FULL, value):
        assert_no_echo(as_text(score_errors(body)))
    for study in with_one_field(STUDY, value):
        assert_no_echo(as_text(study_errors(study)))
    for measurement in with_one_field(STUDY["measurements"][0], value):
        assert_no_echo(as_text(study_errors({**STUDY, "measurements": [measurement, measurement]})))


@given(st.dictionaries(st.sampled_from([*FULL, CANARY]), st.sampled_from(CANARIES)))
def test_no_mixture_of_errors_repeats_a_value(body: Json) -> None:
    assert_no_echo(as_text(score_errors(body)))


@pytest.mark.parametrize(
    "body",
    [
        b'{"%s": 1, "%s": 2}',
        b'{"%s": NaN, "%s": 2}',
        b'{"%s" "%s"}',
        b'{"%s": "\\ud800%s"}',
        b'%s %s"',
        b'{"%s": "\xff%s"}',
        b'{"%s": 1e999, "%s": 1}',
        b"\xef\xbb\xbf%s%s",
    ],
)
@pytest.mark.req("REQ-008")
def test_no_rejection_of_a_body_repeats_it(body: bytes) -> None:
    assert_no_echo(as_text((rejection(body % (CANARY.encode(), CANARY.encode())),)))


def test_every_code_of_the_table_is_raised_somewhere() -> None:
    raised = {rejection(body).code for body, _ in HOSTILE}
    bodies: list[object] = [
        {},
        {**FULL, "x": 1, "sex": "x", "thresholds": [], "subject": "x" * 200, "model_version": "\x00"},
        {**FULL, "hdi_probability": 2, "height_cm": "x", "diameter_mm": 4},
        {**SINGLE, "height_cm": 200, "weight_kg": 10},
        {**SINGLE, "height_cm": 1.76},
        {**SINGLE, "height_cm": 69},
        {**SINGLE, "height_cm": 5.9},
        {**SINGLE, "height_cm": 5.9, "weight_kg": 185},
        {**SINGLE, "weight_kg": 400},
        {**SINGLE, "height_cm": 84, "weight_kg": 176},
        {**SINGLE, "height_cm": 77, "weight_kg": 335},
    ]
    raised |= {error.code for body in bodies for error in score_errors(body)}
    raised |= {error.code for error in study_errors({**STUDY, "measurements": STUDY["measurements"] * 2})}
    raised |= {validation.unknown_site(1).code, validation.unknown_version(1).code}
    assert raised == set(validation.CODES) - set(validation.ROWS)  # those of rows: tests/cli/test_score.py and services


def test_a_code_outside_the_table_is_a_defect() -> None:
    with pytest.raises(KeyError):
        validation.field_error("bad_weather", "age_years", "It rains.")


def test_a_study_is_reported_which_measurement_is_unknown() -> None:
    assert validation.unknown_site(2).field == "measurements[2].site"
    assert validation.unknown_version(0).field == "measurements[0].model_version"
