"""Requests that are right, to be made wrong one field at a time."""

from typing import Any

from app.errors import FieldError, InvalidInput
from app.schemas.requests import ScoreRequest, StudyRequest
from app.schemas.validation import parse

Json = dict[str, Any]

PERSON: Json = {"age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84}
SINGLE: Json = {**PERSON, "diameter_mm": 41}
FULL: Json = {
    **SINGLE,
    "thresholds": [2.0, -2, 3.5],
    "hdi_probability": 0.9,
    "measurement_sd_mm": 0.5,
    "convention": {"edge": "inner", "phase": "mid-systole", "modality": "CT"},
    "model_version": "1.2.3",
    "include_unreliable": True,
    "subject": "case 7 / Zürich",
}
STUDY: Json = {
    **PERSON,
    "measurements": [
        {"site": "SoV", "diameter_mm": 41, "convention": {"edge": "leading"}},
        {"site": "AA", "diameter_mm": 38.5, "measurement_sd_mm": 1, "model_version": "1.0.0"},
    ],
}


def without(body: Json, name: str) -> Json:
    return {key: value for key, value in body.items() if key != name}


def score_errors(body: object) -> tuple[FieldError, ...]:
    try:
        parse(ScoreRequest, body)
    except InvalidInput as rejected:
        return rejected.errors
    return ()


def study_errors(body: object) -> tuple[FieldError, ...]:
    try:
        parse(StudyRequest, body)
    except InvalidInput as rejected:
        return rejected.errors
    return ()


def found(errors: tuple[FieldError, ...]) -> list[tuple[str, str]]:
    return [(error.code, error.field) for error in errors]
