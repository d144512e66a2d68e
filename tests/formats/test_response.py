import json
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.card import ModelRef
from app.domain.patient import Patient, Sex
from app.errors import UnverifiedResult
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
    DiameterAtThreshold,
    Exceedance,
    Hdi,
    IntervalMm,
    ModelConvention,
    ModelProvenance,
    ServiceInfo,
    Summary,
)
from tests.formats.answers import AGE, COMPARATORS, REFERENCE, answer, reliability, score
from tests.samples import a_card

MAN = Patient(55.0, Sex.MALE, 176.0, 84.0)
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
    return Result(site, of, Summary("For clinicians.", "For patients."), provenance(MODEL, SERVICE, NOON))


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
    assert_shape(as_json(score_response("0199", MAN, 41.0, result(full))), SHAPE)


def test_a_study_repeats_everything_but_the_input_per_measurement() -> None:
    encoded = as_json(study_response("0199", MAN, [result(GIVEN), result(WITHHELD, "AA")]))
    assert list(encoded) == ["request_id", "input", "results"]
    assert "diameter_mm" not in encoded["input"]
    alone = as_json(score_response("0199", MAN, 41.0, result(GIVEN)))
    assert encoded["results"][0] == {
        name: value for name, value in alone.items() if name not in ("request_id", "input")
    }
    assert [one["site"] for one in encoded["results"]] == ["SoV", "AA"]


def test_a_withheld_score_leaves_no_number_behind() -> None:
    encoded = body(WITHHELD)
    withheld = ("score", "score_with_measurement_error", "reference", "comparators")
    assert [encoded[name] for name in withheld] == [None] * 4
    assert encoded["reliability"]["reasons"] == [{"code": AGE.code, "message": AGE.message}]


def test_the_input_is_repeated_with_the_body_sizes_that_follow() -> None:
    encoded = as_json(score_response("0199", MAN, 41.0, result(GIVEN)))["input"]
    assert encoded["reference_sex"] == "male"
    assert encoded["bsa_m2"] == pytest.approx(MAN.bsa_m2, rel=1e-8)
    assert encoded["bmi_kg_m2"] == pytest.approx(27.1177686)


def test_numbers_leave_with_nine_digits() -> None:
    encoded = body(replace(GIVEN, score=score(expected_ns=math.pi)))
    assert encoded["score"]["expected_ns"] == 3.14159265
    assert body(replace(GIVEN, score=score(expected_ns=-0.0)))["score"]["expected_ns"].hex() == "0x0.0p+0"


@given(st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_what_is_read_back_is_what_was_encoded(number: float) -> None:
    encoded = body(replace(GIVEN, score=score(expected_ns=number)))
    back = json.loads(encode(encoded))
    assert back == encoded
    assert math.isclose(back["score"]["expected_ns"], number, rel_tol=5.1e-9, abs_tol=5e-324)


BREAKS: dict[str, Callable[[float], Answer]] = {
    "expected_ns": lambda x: replace(GIVEN, score=score(expected_ns=x)),
    "hdi": lambda x: replace(GIVEN, score=score(hdi=Hdi(0.95, 1.0, x, 1.0))),
    "width": lambda x: replace(GIVEN, score=score(hdi=Hdi(0.95, 1.0, 2.0, x))),
    "exceedance": lambda x: replace(GIVEN, score=replace(score(), exceedance=(Exceedance(2.0, x, 0.5),))),
    "interval": lambda x: replace(GIVEN, reference=replace(REFERENCE, interval_mm=IntervalMm(0.95, x, 40.0))),
    "percentile": lambda x: replace(GIVEN, reference=replace(REFERENCE, percentile=x)),
    "comparator": lambda x: replace(GIVEN, comparators=replace(COMPARATORS, linear_z=x)),
    "reliability": lambda x: replace(GIVEN, reliability=replace(GIVEN.reliability, context_hdi_width=x)),
}


@pytest.mark.parametrize("where", BREAKS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_never_leaves(where: str, value: float) -> None:
    with pytest.raises(UnverifiedResult):
        body(BREAKS[where](value))


def at_threshold(median: float, low: float, high: float) -> Answer:
    diameters = (DiameterAtThreshold(2.0, median, low, high),)
    return replace(GIVEN, reference=replace(REFERENCE, diameter_at_threshold_mm=diameters))


@pytest.mark.parametrize(
    "impossible",
    [
        replace(GIVEN, score=score(hdi=Hdi(0.95, 2.0, 1.0, 1.0))),
        replace(GIVEN, score=score(hdi=Hdi(1.01, 1.0, 2.0, 1.0))),
        BREAKS["exceedance"](1.000001),
        BREAKS["exceedance"](-0.000001),
        replace(GIVEN, score=replace(score(), exceedance=(Exceedance(2.0, 0.5, 1.1),))),
        BREAKS["interval"](40.1),
        BREAKS["percentile"](100.1),
        BREAKS["percentile"](-0.1),
        at_threshold(41.0, 42.0, 43.0),
        at_threshold(44.0, 42.0, 43.0),
        at_threshold(41.0, 43.0, 42.0),
        replace(GIVEN, reliability=replace(GIVEN.reliability, context_hdi_width_percentile=101.0)),
    ],
)
def test_what_cannot_be_true_never_leaves(impossible: Answer) -> None:
    with pytest.raises(UnverifiedResult):
        body(impossible)


def test_a_probability_a_rounding_error_above_one_is_one() -> None:
    encoded = body(BREAKS["exceedance"](1.0 + 4e-16))
    assert encoded["score"]["exceedance"][0]["probability"] == 1.0


def test_the_moment_is_given_in_utc_with_milliseconds() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    for moment in (NOON, east):
        assert provenance(MODEL, SERVICE, moment).computed_at == "2026-11-15T10:30:00.123Z"
    whole = NOON.replace(microsecond=0)
    assert provenance(MODEL, SERVICE, whole).computed_at == "2026-11-15T10:30:00.000Z"


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
def test_a_simulated_cohort_is_not_for_care_however_it_is_spelled(name: str) -> None:
    assert provenance(replace(MODEL, cohort=name), SERVICE, NOON).intended_use.startswith("Evaluation model")
