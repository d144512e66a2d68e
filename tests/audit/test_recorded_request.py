from typing import Any

import msgspec
import pytest

from app.audit.recorded_request import SubjectHasher, recorded_input, request_from_record
from app.schemas.requests import ScoreRequest

HASHER = SubjectHasher(b"k" * 32)
LEAST: dict[str, Any] = {"age_years": 55.25, "sex": "male", "height_cm": 176.1, "weight_kg": 84, "diameter_mm": 41.3}
MOST = {
    **LEAST,
    "thresholds": [2, -0.1],
    "hdi_probability": 0.9,
    "measurement_sd_mm": 1.5,
    "convention": {"edge": "inner"},
    "model_version": "1.2.3",
    "include_unreliable": True,
}


@pytest.mark.parametrize("body", [LEAST, MOST])
def test_a_recorded_request_is_asked_again_to_the_last_digit(body: dict[str, Any]) -> None:
    request = ScoreRequest.model_validate(body).for_site("SoV")
    stored = msgspec.json.decode(msgspec.json.encode(recorded_input(request, HASHER)))
    assert request_from_record("SoV", stored) == request


def test_a_field_that_a_row_of_a_block_did_not_give_is_asked_again_without_it() -> None:
    stored = msgspec.json.decode(msgspec.json.encode(recorded_input(ScoreRequest(**LEAST).for_site("SoV"), HASHER)))
    assert request_from_record("SoV", stored | {"measurement_sd_mm": None}).body == ScoreRequest(**LEAST)


def test_the_bytes_of_a_record_are_those_of_every_release() -> None:
    """Stored chains hold these: a change here would make old and new records differ."""
    request = ScoreRequest.model_validate(MOST | {"thresholds": [2, -0.0]}).for_site("SoV")
    assert msgspec.json.encode(recorded_input(request, HASHER), order="sorted") == (
        b'{"age_years":55.25,"convention":{"edge":"inner"},"diameter_mm":41.3,"hdi_probability":0.9,"height_cm":176.1,'
        b'"include_unreliable":true,"measurement_sd_mm":1.5,"model_version":"1.2.3","sex":"male","subject":null,'
        b'"thresholds":[2.0,0.0],"weight_kg":84.0}'
    )
    smallest = ScoreRequest.model_validate(LEAST).for_site("SoV")
    assert msgspec.json.encode(recorded_input(smallest, HASHER), order="sorted") == (
        b'{"age_years":55.25,"convention":{},"diameter_mm":41.3,"hdi_probability":0.95,"height_cm":176.1,'
        b'"include_unreliable":false,"measurement_sd_mm":0.0,"model_version":"current","sex":"male","subject":null,'
        b'"thresholds":[2.0],"weight_kg":84.0}'
    )


@pytest.mark.req("REQ-079")
def test_the_patient_reference_is_there_as_a_keyed_hash_only() -> None:
    stored = recorded_input(ScoreRequest.model_validate({**LEAST, "subject": "patient-4711"}).for_site("SoV"), HASHER)
    assert "4711" not in str(stored)
    assert stored["subject"] == HASHER.hash("patient-4711")
    assert stored["subject"] != SubjectHasher(b"l" * 32).hash("patient-4711")
