"""Requests that are right, to be made wrong one field at a time."""

from typing import Any

from app.errors import FieldError, InvalidInput
from app.formats import score_request, study_request

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


def single_faults(body: object) -> tuple[FieldError, ...]:
    try:
        score_request.parse("SoV", body)
    except InvalidInput as refused:
        return refused.faults
    return ()


def study_faults(body: object) -> tuple[FieldError, ...]:
    try:
        study_request.parse(body)
    except InvalidInput as refused:
        return refused.faults
    return ()


def found(faults: tuple[FieldError, ...]) -> list[tuple[str, str]]:
    return [(fault.code, fault.field) for fault in faults]
