import pytest

from app.schemas.fields import request_limits
from app.schemas.lookups import Liveness, ModelList, Readiness, RequestLimits, SelfTest, SiteList
from app.schemas.model_card import ModelCard
from tests.web.serving import READING, SCORE, Running


def test_sites_name_their_current_and_loaded_versions(shared: Running) -> None:
    shared.score(READING | {"model_version": "1.0.0"})
    sites = SiteList.model_validate_json(shared.client.get("/v1/sites").content, strict=True)
    assert {s.site: (s.current, s.loaded) for s in sites.sites} == {
        "AA": ("1.0.0", ["1.0.0"]),
        "SoV": ("1.1.0", ["1.0.0", "1.1.0"]),
    }


def test_limits_are_those_that_requests_are_held_against(shared: Running) -> None:
    found = RequestLimits.model_validate_json(shared.client.get("/v1/limits").content, strict=True)
    assert [(limit.field, limit.low, limit.high) for limit in found.limits] == [
        (m.field, m.low, m.high) for m in request_limits()
    ]
    assert found.choices["sex"] == ["male", "female"]


def test_a_card_tells_what_the_version_is(shared: Running) -> None:
    card = ModelCard.model_validate_json(shared.client.get("/v1/models/SoV/1.0.0").content, strict=True)
    models = ModelList.model_validate_json(shared.client.get("/v1/models").content, strict=True)
    assert {m.sha256 for m in models.models if (m.site, m.version) == ("SoV", "1.0.0")} == {card.sha256}
    assert card.cohort.name == "simulated"
    assert shared.client.get("/v1/models/SoV/current").json()["version"] == "1.1.0"


def test_the_selftest_runs_the_golden_cases_of_every_loaded_model(shared: Running) -> None:
    found = SelfTest.model_validate_json(shared.client.get("/v1/selftest").content, strict=True)
    assert (found.failed, found.passed, found.cases) == (0, found.cases, 2 * len(found.models))
    assert len(found.models) == len(shared.runtime.loaded_models.loaded)


def test_health_says_what_serves(shared: Running) -> None:
    Liveness.model_validate_json(shared.client.get("/health/live").content, strict=True)
    ready = Readiness.model_validate_json(shared.client.get("/health/ready").content, strict=True)
    assert ready.ready
    assert (ready.backend, ready.device) == ("numpy", "CPU")
    assert {model.site for model in ready.models} == {"SoV", "AA"}


def test_metrics_count_by_template_and_never_by_what_was_sent(shared: Running) -> None:
    shared.score()
    shared.client.get("/v1/canary")
    shared.score(path="/v1/sites/canary/score")
    text = shared.client.get("/metrics").text
    assert 'normalcy_requests_total{method="POST",route="/v1/sites/{site}/score",status="404"}' in text
    assert 'normalcy_requests_total{method="GET",route="none",status="404"}' in text
    assert 'normalcy_scores_total{site="SoV",version="1.1.0"}' in text
    assert 'normalcy_verdicts_total{site="SoV",verdict="caution"}' in text
    for name in ("request_seconds_bucket", "audit_batch_size_bucket", "audit_commit_seconds_bucket"):
        assert f"normalcy_{name}" in text
    for name in ("audit_queue_depth", "audit_head_age_seconds", "audit_dropped_total"):
        assert f"normalcy_{name}" in text
    assert "canary" not in text


@pytest.mark.parametrize("path", ["/", "/health/live", "/v1/sites", "/v1/models/SoV/9.9.9", "/nowhere"])
def test_head_is_get_without_the_body(shared: Running, path: str) -> None:
    whole, head = shared.client.get(path), shared.client.head(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["Content-Type"] == whole.headers["Content-Type"]
    assert head.headers["Content-Length"] == whole.headers["Content-Length"]


@pytest.mark.parametrize("path", ["/v1/sites", "/v1/limits", "/v1/models", "/v1/models/SoV/1.0.0", "/v1/selftest"])
def test_a_query_parameter_that_a_route_does_not_have_is_rejected(shared: Running, path: str) -> None:
    answer = shared.client.get(path, params={"site": "canary"})
    assert answer.status_code == 422
    message = "This route takes no query parameters."
    assert answer.json()["errors"] == [{"code": "unknown_field", "field": "(query)", "message": message}]


def test_a_score_takes_no_query_parameter(shared: Running) -> None:
    assert shared.score(path=f"{SCORE}?thresholds=3").status_code == 422
    assert shared.score(path=f"{SCORE}?").status_code == 200


def test_health_ignores_query_parameters(shared: Running) -> None:
    """A load balancer may add one."""
    assert shared.client.get("/health/live?probe=1").status_code == 200
