import pytest

from app.schemas.requests import ScoreRequest, StudyRequest
from app.schemas.validation import parse
from tests.schemas.bodies import PERSON, STUDY, Json, found, study_errors, without


def measurements(*given: object) -> Json:
    return {**PERSON, "measurements": list(given)}


def test_a_study_is_the_single_requests_of_its_measurements() -> None:
    study = parse(StudyRequest, {**STUDY, "thresholds": [1, 3], "include_unreliable": True, "subject": "s"})
    shared = {**PERSON, "thresholds": [1, 3], "include_unreliable": True, "subject": "s"}
    singles = [(one["site"], shared | without(one, "site")) for one in STUDY["measurements"]]
    assert study.site_requests() == [parse(ScoreRequest, single).for_site(site) for site, single in singles]
    assert study.to_patient() == study.site_requests()[0].query.patient


def test_a_error_of_a_measurement_carries_its_path() -> None:
    study = measurements(
        {"site": "SoV", "diameter_mm": 41},
        {"diameter_mm": 4.1, "convention": {"edge": "middle", "x": 1}, "measurement_sd_mm": 6, "model_version": 1},
        "AA",
        {"site": "AA", "diameter_mm": "41", "note": 1},
    )
    assert found(study_errors(study)) == [
        ("missing", "measurements[1].site"),
        ("given_in_cm", "measurements[1].diameter_mm"),
        ("out_of_range", "measurements[1].measurement_sd_mm"),
        ("unknown_field", "measurements[1].convention.(unknown)"),
        ("not_a_choice", "measurements[1].convention.edge"),
        ("wrong_type", "measurements[1].model_version"),
        ("wrong_type", "measurements[2]"),
        ("unknown_field", "measurements[3].(unknown)"),
        ("wrong_type", "measurements[3].diameter_mm"),
    ]


def test_errors_of_patient_options_and_measurements_come_together() -> None:
    study = {**STUDY, "age_years": 200, "hdi_probability": 2, "diameter_mm": 41, "measurements": [{"site": "SoV"}]}
    assert found(study_errors(study)) == [
        ("unknown_field", "(unknown)"),
        ("out_of_range", "age_years"),
        ("out_of_range", "hdi_probability"),
        ("missing", "measurements[0].diameter_mm"),
    ]


@pytest.mark.req("REQ-011")
def test_each_site_is_measured_at_most_once() -> None:
    twice = [{"site": site, "diameter_mm": 40} for site in ("SoV", "AA", "SoV")]
    assert found(study_errors(measurements(*twice))) == [("duplicate_site", "measurements[2].site")]
    twice[1]["diameter_mm"] = 400
    assert found(study_errors(measurements(*twice))) == [
        ("out_of_range", "measurements[1].diameter_mm"),
        ("duplicate_site", "measurements[2].site"),
    ]


@pytest.mark.parametrize("field", ["diameter_mm", "measurement_sd_mm", "convention", "model_version", "site"])
def test_what_belongs_to_a_measurement_is_not_known_at_the_top(field: str) -> None:
    errors = study_errors({**STUDY, field: 1})
    assert found(errors) == [("unknown_field", "(unknown)")]
    assert "Each element of measurements takes site, diameter_mm, " in errors[0].message
    assert "Each element" not in study_errors({**STUDY, "note": 1})[0].message


@pytest.mark.parametrize(
    ("value", "code"), [([], "too_short"), (None, "wrong_type"), ({}, "wrong_type"), ("SoV", "wrong_type")]
)
def test_measurements_are_an_array_of_one_to_eight(value: object, code: str) -> None:
    assert found(study_errors({**STUDY, "measurements": value})) == [(code, "measurements")]


def test_no_more_measurements_are_looked_at_than_allowed() -> None:
    sites = [{"site": f"S{k}", "diameter_mm": 40} for k in range(8)]
    assert study_errors(measurements(*sites)) == ()
    assert found(study_errors(measurements(*sites, *["no object"] * 1000))) == [("too_long", "measurements")]
    assert found(study_errors(without(STUDY, "measurements"))) == [("missing", "measurements")]


@pytest.mark.parametrize(("site", "code"), [("", "too_short"), ("x" * 65, "too_long"), (1, "wrong_type")])
def test_a_site_is_a_short_text(site: object, code: str) -> None:
    errors = study_errors(measurements({"site": site, "diameter_mm": 40}))
    assert found(errors) == [(code, "measurements[0].site")]


def test_a_study_that_is_no_object_has_one_error() -> None:
    assert found(study_errors([STUDY])) == [("wrong_type", "")]


def test_an_age_that_is_too_high_hides_no_small_diameter_of_a_study() -> None:
    measurements = [{"site": "SoV", "diameter_mm": 30}, {"site": "AA", "diameter_mm": 4.1}]
    found = study_errors({**STUDY, "age_years": 121, "measurements": measurements})
    assert [error.field for error in found] == ["age_years", "measurements[1].diameter_mm"]
