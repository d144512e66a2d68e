"""Limits for callers, over HTTP. How requests are read within limits is in test_protocol.py and test_pipelining.py."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.audit import writer
from app.inference import microbatch
from app.runtime import rate_limits
from app.runtime.rate_limits import MAX_FAILURES
from app.settings import Settings
from app.web import security
from tests.web.serving import MAN, READING, Running, bearer, create_key, serving
from tests.web.test_batch_slots import Stream, wait_until

READING_OF_A_VISIT = {"age_years": 50, "height_cm": 176, "weight_kg": 84, "diameter_mm": 40}


def slowly(settings: Settings, burst: int) -> Settings:
    """No bucket is refilled while the test runs."""
    return replace(settings, rate_per_second=0.001, rate_burst=burst)


@pytest.mark.req("REQ-106")
def test_a_caller_over_its_rate_is_refused_and_others_are_not(settings: Settings, models_dir: Path) -> None:
    keys = [create_key(settings, ["score", "model:read"]) for _ in range(2)]
    with serving(slowly(settings, 3), models_dir) as running:
        assert [running.score(headers=bearer(keys[0])).status_code for _ in range(3)] == [200] * 3
        refused = running.client.get("/v1/sites", headers=bearer(keys[0]))
        assert refused.status_code == 429
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert refused.json()["type"].endswith("over-rate")
        seconds = refused.headers["Retry-After"]
        assert 0 < int(seconds) <= 1000
        assert refused.headers["RateLimit"] == f'"requests";r=0;t={seconds}'
        assert refused.headers["RateLimit-Policy"] == '"requests";q=3;w=3000'
        assert running.score(headers=bearer(keys[1])).status_code == 200
        assert running.client.get("/health/ready", headers=bearer(keys[0])).status_code == 200
    [record] = running.records("refusal")
    assert (record.principal, record.status) == (f"{keys[0].split('_')[1]} test", 429)
    assert len(running.records("score")) == 4


def test_this_machine_without_a_credential_is_not_limited(settings: Settings, models_dir: Path) -> None:
    with serving(slowly(settings, 1), models_dir) as running:
        assert {running.client.get("/v1/sites").status_code for _ in range(10)} == {200}


def test_a_request_without_the_scope_takes_a_token(settings: Settings, models_dir: Path) -> None:
    key = create_key(settings, ["score"])
    with serving(slowly(settings, 2), models_dir) as running:
        sent = [running.client.get("/v1/sites", headers=bearer(key)).status_code for _ in range(3)]
        assert sent == [403, 403, 429]
        assert running.score(headers=bearer(key)).status_code == 429


@pytest.mark.req("REQ-103")
def test_a_caller_with_too_many_requests_in_flight_is_refused_until_some_have_ended(
    settings: Settings, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "MAX_IN_FLIGHT", 2)
    busy, other = (create_key(settings, ["score"]) for _ in range(2))
    with serving(replace(settings, rate_per_second=0), models_dir) as running:
        in_flight = [Stream(running, busy) for _ in range(2)]
        for stream in in_flight:
            stream.score()
        refused = running.score(headers=bearer(busy))
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        assert refused.json()["detail"] == security.TOO_MANY_IN_FLIGHT
        assert running.score(headers=bearer(other)).status_code == 200
        in_flight.pop().end()
        in_flight.pop().leave()
        wait_until(lambda: not running.runtime.in_flight._counts)
        assert running.score(headers=bearer(busy)).status_code == 200
        assert running.client.get("/v1/sites", headers=bearer(busy)).status_code == 403  # and a refusal ends too
        wait_until(lambda: not running.runtime.in_flight._counts)


@pytest.mark.req("REQ-103")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/studies/score", {**MAN, "measurements": [{"site": site, "diameter_mm": 36} for site in ("SoV", "AA")]}),
        ("/v1/sites/SoV/chart", {**READING, "visits": [READING_OF_A_VISIT]}),
    ],
    ids=["study", "chart"],
)
def test_each_measurement_of_a_request_counts_as_one_in_flight(
    settings: Settings, models_dir: Path, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    monkeypatch.setattr(rate_limits, "MAX_IN_FLIGHT", 2)
    key = create_key(settings, ["score"])
    with serving(settings, models_dir) as running:
        for _ in range(2):
            assert running.score(body, path, headers=bearer(key)).status_code == 200
        stream = Stream(running, key)
        stream.score()
        assert running.score(headers=bearer(key)).status_code == 200
        refused = running.score(body, path, headers=bearer(key))
        assert (refused.status_code, refused.json()["detail"]) == (429, security.TOO_MANY_IN_FLIGHT)
        stream.end()
        wait_until(lambda: not running.runtime.in_flight._counts)
        assert running.score(body, path, headers=bearer(key)).status_code == 200
        wait_until(lambda: not running.runtime.in_flight._counts)


def test_one_caller_can_fill_half_of_every_queue_at_most() -> None:
    assert 64 <= rate_limits.MAX_IN_FLIGHT <= min(microbatch.CAPACITY, writer.CAPACITY) / 2


def statuses(running: Running, credential: str, times: int) -> Counter[int]:
    return Counter(running.score(headers=bearer(credential)).status_code for _ in range(times))


@pytest.mark.req("REQ-107")
def test_a_wrong_credential_is_locked_out_and_the_right_one_never(
    settings: Settings, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "BURST", 10_000)  # nothing waits
    good, other = create_key(settings, ["score"]), create_key(settings, ["score"])
    wrong = good[:-1] + ("A" if good[-1] != "A" else "B")
    unknown = f"nsk_{'z' * 8}_{good[13:]}"
    with serving(settings, models_dir) as running:
        for credential in (wrong, unknown):  # no difference between the two
            assert statuses(running, credential, MAX_FAILURES + 5) == {401: MAX_FAILURES, 429: 5}
        locked_out = running.score(headers=bearer(wrong))
        assert 0 < int(locked_out.headers["Retry-After"]) <= 60
        assert "RateLimit" not in locked_out.headers
        assert running.score(headers=bearer(good)).status_code == 200  # the owner of the key, at the same address
        assert running.score(headers=bearer(other)).status_code == 200
        assert running.score().status_code == 401
        counted = running.runtime.metrics.registry.get_sample_value
        assert counted("normalcy_credential_refusals_total", {"reason": "locked_out"}) == 11
