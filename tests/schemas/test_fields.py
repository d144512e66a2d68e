"""What is derived from the request models: limits, choices, specifications of fields."""

from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Body, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from app.domain import limits
from app.domain.limits import Limit
from app.schemas.base import Schema
from app.schemas.fields import leaves, request_choices, request_limits, spec
from app.schemas.requests import (
    MAX_KEYS,
    ActivateRequest,
    ChartRequest,
    Measurement,
    ScoreRequest,
    StatedConvention,
    StudyRequest,
    Visit,
)
from app.schemas.validation import field_errors, parse
from tests.schemas.bodies import FULL, SINGLE, STUDY, found, score_errors, study_errors


@pytest.mark.req("REQ-002")
def test_the_limits_are_those_of_the_contract() -> None:
    assert request_limits() == (
        limits.AGE,
        limits.HEIGHT,
        limits.WEIGHT,
        limits.BMI,
        limits.DIAMETER,
        limits.DIAMETER_FROM_SCHOOL_AGE,
        Limit("thresholds[]", "NS", -10.0, 10.0, default=2.0),
        Limit("hdi_probability", "probability", 0.5, 0.99, default=0.95),
        Limit("measurement_sd_mm", "mm", 0.0, 5.0, default=0.0),
        Limit("thresholds", "numbers", 1, 8, default=1),
        Limit("subject", "characters", 1, 128),
        Limit("measurements", "measurements", 1, 8),
        Limit("visits", "visits", 1, 10),
        Limit("items", "items", 0, 10_000),
        *limits.ADVISORY,
    )


def test_the_choices_are_those_of_the_contract() -> None:
    assert request_choices() == {
        "sex": ("male", "female"),
        "edge": ("leading", "inner", "outer"),
        "phase": ("end-diastole", "mid-systole"),
        "modality": ("TTE", "CT", "MR"),
    }


@pytest.mark.parametrize("model", [ScoreRequest, StudyRequest, ActivateRequest])
def test_every_field_is_described_and_every_number_has_a_unit_and_a_range(model: Any) -> None:
    for path, field in leaves(spec(model).fields.values()):
        assert field.description or path == "measurements"
        if field.kind == "number":
            assert field.unit
            assert field.low < field.high
        if field.kind in ("text", "array"):
            assert 1 <= field.low < field.high


def test_every_limit_rejects_what_is_beyond_it() -> None:
    for limit in request_limits():
        if limit.field in FULL and limit.unit not in ("characters", "numbers") and not limit.advisory:
            assert score_errors({**FULL, limit.field: limit.high + 1e-6})
            assert score_errors({**FULL, limit.field: limit.low - 1e-6})


def test_an_array_that_is_too_long_hides_no_other_error() -> None:
    thresholds = [2.0, "3", 99, *[1.0] * 7, "not looked at"]
    assert found(score_errors({**SINGLE, "age_years": 200, "thresholds": thresholds})) == [
        ("out_of_range", "age_years"),
        ("too_long", "thresholds"),
        ("wrong_type", "thresholds[1]"),
        ("out_of_range", "thresholds[2]"),
    ]
    measurements = [{"site": f"S{k}", "diameter_mm": 4.1 if k == 3 else 40} for k in range(9)]
    assert found(study_errors({**STUDY, "measurements": measurements})) == [
        ("too_long", "measurements"),
        ("given_in_cm", "measurements[3].diameter_mm"),
    ]


@pytest.mark.anyio
async def test_fastapi_validates_with_the_same_model_and_its_errors_read_the_same() -> None:
    application, seen = FastAPI(), []
    body = {**SINGLE, "diameter_mm": 4.1, "x": 1, "convention": {"edge": 3}}

    @application.post("/score")
    async def score(request: Annotated[ScoreRequest, Body()]) -> float:
        return request.diameter_mm

    @application.exception_handler(RequestValidationError)
    async def handle(_: Any, error: RequestValidationError) -> JSONResponse:
        seen.extend(field_errors(ScoreRequest, error.errors(), error.body))
        return JSONResponse({}, 422)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://test") as client:
        assert (await client.post("/score", json=body)).status_code == 422
        assert tuple(seen) == score_errors(body)
        assert len(seen) == 3
        assert (await client.post("/score", json=SINGLE)).json() == 41.0
    shown = get_openapi(title="t", version="1", routes=application.routes)["components"]["schemas"]["ScoreRequest"]
    assert shown["properties"]["diameter_mm"]["maximum"] == 120
    assert shown["additionalProperties"] is False


def test_the_cost_of_many_unknown_fields_is_bounded() -> None:
    many = {f"x{k}": 1 for k in range(2000)}
    with pytest.raises(ValidationError) as raised:
        ScoreRequest.model_validate({**SINGLE, "age_years": 200, "convention": many, **many})
    assert raised.value.error_count() == 3
    unknown, age, within = score_errors({**SINGLE, "age_years": 200, "convention": many, **many})
    assert "2000 unknown fields. " in unknown.message
    assert (age.field, within.field) == ("age_years", "convention.(unknown)")


def test_no_object_of_a_request_has_more_fields_than_are_looked_at() -> None:
    for model in (ScoreRequest, StudyRequest, Measurement, StatedConvention, ActivateRequest, ChartRequest, Visit):
        assert len(model.model_fields) < MAX_KEYS


def test_a_field_is_named_only_where_it_is_defined_and_used() -> None:
    app = Path(__file__).parents[2] / "app"
    named = {str(path.relative_to(app)) for path in app.rglob("*.py") if "measurement_sd_mm" in path.read_text()}
    listed_on_purpose = ("formats/score_table", "formats/score_template", "benchmark/conformance/")
    elsewhere = {name for name in named if not name.startswith(listed_on_purpose)}
    assert elsewhere == {"schemas/requests.py", "domain/query.py", "formats/summaries.py"}


def test_activation_takes_one_version() -> None:
    assert parse(ActivateRequest, {"version": "1.2.0"}).version == "1.2.0"


class _Nullable(Schema):
    note: str | None = None


class _Unbounded(Schema):
    note: str


@pytest.mark.parametrize("model", [_Nullable, _Unbounded])
def test_a_field_that_has_no_message_is_rejected_by_name(model: type[Schema]) -> None:
    with pytest.raises(TypeError, match="note: "):
        spec(model)
