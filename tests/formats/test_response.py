import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from app.domain.card import ModelRef
from app.formats.response import (
    Result,
    body,
    encode,
    model_provenance,
    provenance,
    score_response,
    study_response,
)
from app.schemas.answers import (
    Answer,
    MeasurementInput,
    ModelConvention,
    ModelProvenance,
    ServiceInfo,
    Summary,
)
from tests.formats.answers import AGE, answer, reliability, score
from tests.samples import a_card

GIVEN_INPUT = MeasurementInput(55.0, "male", 176.0, 84.0, 41.0, 2.04, "Haycock", 27.1177686)
MODEL = ModelProvenance("SoV", "1.0.0", "ab" * 32, "simulated", 1110, ModelConvention("leading", "end-diastole", "TTE"))
SERVICE = ServiceInfo("0.1.0", "abc", "numpy", "CPU")
NOON = datetime(2026, 11, 15, 10, 30, 0, 123999, tzinfo=UTC)
GIVEN = answer(score(), reliability())
WITHHELD = answer(None, reliability("not_reliable", AGE))

# The response of the contract, names and order.
HDI_SHAPE = ["probability", "low", "high", "width"]
EXCEEDANCE = [["threshold", "probability", "probability_below"]]
FINDING = ["code", "field", "message"]
SHAPE: dict[str, Any] = {
    "request_id": None,
    "site": None,
    "input": [
        *("age_years", "reference_sex", "height_cm", "weight_kg", "diameter_mm", "bsa_m2", "bsa_formula", "bmi_kg_m2")
    ],
    "score": {"expected_ns": None, "hdi": HDI_SHAPE, "exceedance": EXCEEDANCE, "position": None},
    "score_with_measurement_error": {"hdi": HDI_SHAPE, "exceedance": EXCEEDANCE},
    "reference": {
        "expected_diameter_mm": None,
        "expected_diameter_sd_mm": None,
        "aleatoric_sd_mm": None,
        "aleatoric_sd_log_se": None,
        "interval_mm": ["probability", "low", "high"],
        "percentile": None,
        "diameter_at_threshold_mm": [["threshold", "median", "low", "high"]],
    },
    "comparators": {
        "linear_z": None,
        "altman_z": None,
        "diameter_per_bsa_mm_m2": None,
        "diameter_per_height_cm_m": None,
        "area_per_height_cm2_m": None,
        "not_applicable": [FINDING],
    },
    "reliability": {
        "verdict": None,
        "context_hdi_width": None,
        "context_hdi_width_percentile": None,
        "reasons": [["code", "message"]],
    },
    "advisories": [FINDING],
    "summary": ["clinician", "patient"],
    "provenance": {
        "model": {
            "site": None,
            "version": None,
            "sha256": None,
            "cohort": None,
            "cohort_size": None,
            "convention": ["edge", "phase", "modality"],
        },
        "service": ["version", "commit", "backend", "device"],
        "computed_at": None,
        "intended_use": None,
    },
}


def result(of: Answer, site: str = "SoV") -> Result:
    return Result(site, GIVEN_INPUT, of, Summary("For clinicians.", "For patients."), provenance(MODEL, SERVICE, NOON))


def as_json(response: object) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(encode(response))
    return plain


def assert_shape(value: Any, shape: Any) -> None:
    """A dict of shapes, a list of names for a flat object, or a list of one list for an array of flat objects."""
    if isinstance(shape, dict):
        assert list(value) == list(shape)
        for name, inner in shape.items():
            assert_shape(value[name], inner)
    elif isinstance(shape, list) and isinstance(shape[0], list):
        assert isinstance(value, list)
        assert value
        assert all(list(item) == shape[0] for item in value)
    elif isinstance(shape, list):
        assert list(value) == shape


def test_a_single_answer_has_the_fields_of_the_contract_in_order() -> None:
    full = answer(score(), reliability("caution", AGE))
    assert_shape(as_json(score_response("0199", result(full))), SHAPE)


def test_a_study_repeats_everything_but_the_input_per_measurement() -> None:
    encoded = as_json(study_response("0199", [result(GIVEN), result(WITHHELD, "AA")]))
    assert list(encoded) == ["request_id", "input", "results"]
    alone = as_json(score_response("0199", result(GIVEN)))
    assert encoded["results"][0] == {
        name: value for name, value in alone.items() if name not in ("request_id", "input")
    }
    assert [one["site"] for one in encoded["results"]] == ["SoV", "AA"]


@pytest.mark.req("REQ-031")
def test_a_withheld_score_leaves_no_number_behind() -> None:
    encoded = body(WITHHELD)
    withheld = ("score", "score_with_measurement_error", "reference", "comparators")
    assert [encoded[name] for name in withheld] == [None] * 4
    assert encoded["reliability"]["reasons"] == [{"code": AGE.code, "message": AGE.message}]


def test_the_input_is_repeated() -> None:
    given = as_json(score_response("0199", result(GIVEN)))["input"]
    assert given == as_json(GIVEN_INPUT)
    in_study = as_json(study_response("0199", [result(GIVEN)]))["input"]
    assert in_study == {name: value for name, value in given.items() if name != "diameter_mm"}


def test_the_moment_is_given_in_utc_with_milliseconds() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    for moment in (NOON, east):
        assert provenance(MODEL, SERVICE, moment).computed_at == "2026-11-15T10:30:00.123Z"
    whole = NOON.replace(microsecond=0)
    assert provenance(MODEL, SERVICE, whole).computed_at == "2026-11-15T10:30:00.000Z"


@pytest.mark.req("REQ-053")
def test_the_model_is_named_with_its_digest_its_people_and_its_convention() -> None:
    card = a_card()
    encoded = as_json(model_provenance(ModelRef("SoV", "1.0.0", "ab" * 32), card))
    assert_shape(encoded, SHAPE["provenance"]["model"])
    assert (encoded["sha256"], encoded["cohort"], encoded["cohort_size"]) == (
        "ab" * 32,
        card.cohort.name,
        card.cohort.size,
    )
    assert encoded["convention"]["edge"] == card.convention.edge


def test_the_intended_use_follows_the_cohort() -> None:
    assert "not for care" in provenance(MODEL, SERVICE, NOON).intended_use
    assert "not for care" not in provenance(replace(MODEL, cohort="Zürich 2020"), SERVICE, NOON).intended_use


@pytest.mark.parametrize("name", ["simulated", "Simulated", "SIMULATED"])
@pytest.mark.req("REQ-041")
def test_a_simulated_cohort_is_not_for_care_however_it_is_spelled(name: str) -> None:
    assert provenance(replace(MODEL, cohort=name), SERVICE, NOON).intended_use.startswith("Evaluation model")
