import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import InvalidSettings
from app.runtime import issuer_keys, used_tokens
from app.runtime.credentials import Caller
from app.runtime.issuers import Issuer
from app.runtime.runtime import Runtime
from app.schemas.answers import ScoreResponse
from app.schemas.requests import SiteRequest
from app.services import score_measurements
from app.settings import Settings
from tests.issuers import NAME, OTHER_RSA_KEY, KeyServer, forged, issuers_file, key_server, key_set, token
from tests.web.serving import Running, bearer, create_key, serving


@pytest.fixture
def keys() -> Iterator[KeyServer]:
    with key_server() as served:
        yield served


def with_issuer(settings: Settings, source: str, **entry: object) -> Settings:
    return replace(settings, jwt_issuers_file=issuers_file(settings.data_dir, source, **entry))


def refusals(running: Running, reason: str) -> float:
    return (
        running.runtime.metrics.registry.get_sample_value("normalcy_credential_refusals_total", {"reason": reason})
        or 0.0
    )


@pytest.mark.req("REQ-099")
def test_a_token_scores_and_stands_in_the_record(settings: Settings, models_dir: Path, keys: KeyServer) -> None:
    chosen = with_issuer(settings, f'jwks_url = "{keys.url}"', person_claim="name")
    with serving(chosen, models_dir) as running:
        good = bearer(token("ES384", name="Ada Byron"))
        assert running.score(headers=good).status_code == 200
        assert running.client.get("/v1/sites", headers=good).status_code == 403
        assert (
            running.client.get("/v1/sites", headers=bearer(token(name="A", scope="system/model.r"))).status_code == 200
        )
        assert running.score().status_code == 401  # no longer open to this machine
        [record] = running.records("score")
        assert record.principal == f"{NAME} dr-7 Ada Byron"
        assert refusals(running, "scope_missing") == refusals(running, "none") == 1
    [refusal] = [record for record in running.records("refusal") if record.status == 403]
    assert refusal.principal == f"{NAME} dr-7 Ada Byron"


def test_tokens_and_keys_work_side_by_side(settings: Settings, models_dir: Path, keys: KeyServer) -> None:
    key = create_key(settings, ["score"])
    with serving(with_issuer(settings, f'jwks_url = "{keys.url}"'), models_dir) as running:
        assert running.score(headers=bearer(key)).status_code == 200
        assert running.score(headers=bearer(token())).status_code == 200


@pytest.mark.req("REQ-098")
def test_every_refused_credential_gets_the_same_response(settings: Settings, models_dir: Path, keys: KeyServer) -> None:
    """Whether a key or an issuer exists, and what is wrong with a credential, is not the caller's business."""
    key = create_key(settings, ["score"])
    wrong = {
        "key_wrong": key[:-1] + ("A" if key[-1] != "A" else "B"),
        "token_expired": token(exp=1),
        "token_audience": token(aud="https://elsewhere.example"),
        "token_signature": token("RS256", OTHER_RSA_KEY),
        "token_key": token(headers={"kid": "other"}),
        "token_issuer": token(iss="https://unknown.example"),
        "token_algorithm": forged({"alg": "none", "kid": "rsa"}, {"iss": NAME}),
        "token_malformed": "x",
    }
    with serving(with_issuer(settings, f'jwks_url = "{keys.url}"'), models_dir) as running:
        same = {"X-Request-ID": "same"}
        expected = running.score(headers=same)
        for reason, text in wrong.items():
            answer = running.score(headers=bearer(text) | same)
            assert answer.status_code == 401
            assert answer.content == expected.content
            assert answer.headers.keys() == expected.headers.keys()
            assert refusals(running, reason) == 1, reason


def test_new_keys_of_an_issuer_are_found_and_old_ones_forgotten(
    settings: Settings, models_dir: Path, keys: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_keys, "MIN_SECONDS_BETWEEN", 0.0)
    with serving(with_issuer(settings, f'jwks_url = "{keys.url}"'), models_dir) as running:
        old, new = bearer(token()), bearer(token("RS256", OTHER_RSA_KEY, {"kid": "new"}))
        assert running.score(headers=old).status_code == 200
        keys.content = key_set({"new": OTHER_RSA_KEY})
        assert running.score(headers=new).status_code == 200
        assert running.score(headers=old).status_code == 401
        keys.status = 500
        assert running.score(headers=bearer(token(headers={"kid": "third"}))).status_code == 401
        assert running.score(headers=new).status_code == 200  # the last keys stay in use
        [warning] = running.client.get("/health/ready").json()["warnings"]
        assert warning["code"] == "issuer_keys_not_read"
        assert "login.example" not in json.dumps(warning)


def test_the_wait_for_the_keys_of_an_issuer_is_part_of_the_time_that_a_request_may_take(
    settings: Settings, models_dir: Path, keys: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[float] = []  # of the time for the record, of each request
    score, read = score_measurements.score_measurement, issuer_keys._content

    async def noting(runtime: Runtime, caller: Caller, request: SiteRequest) -> ScoreResponse:
        left.append(caller.deadline - asyncio.get_running_loop().time())
        return await score(runtime, caller, request)

    def slowly(issuer: Issuer) -> bytes:
        time.sleep(1.0)
        return read(issuer)

    monkeypatch.setattr(score_measurements, "score_measurement", noting)
    monkeypatch.setattr(issuer_keys, "MIN_SECONDS_BETWEEN", 0.0)
    with serving(with_issuer(settings, f'jwks_url = "{keys.url}"'), models_dir) as running:
        monkeypatch.setattr(issuer_keys, "_content", slowly)
        keys.content = key_set({"new": OTHER_RSA_KEY})
        new = bearer(token("RS256", OTHER_RSA_KEY, {"kid": "new"}))
        assert [running.score(headers=new).status_code for _ in range(2)] == [200, 200]
        assert left[0] <= running.settings.audit_budget_seconds - 1.0 < left[1]


def test_an_issuer_that_cannot_be_reached_does_not_stop_the_service(settings: Settings, models_dir: Path) -> None:
    key = create_key(settings, ["score"])
    with serving(with_issuer(settings, 'jwks_url = "http://127.0.0.1:1/keys"'), models_dir) as running:
        assert running.score(headers=bearer(key)).status_code == 200
        assert running.score(headers=bearer(token())).status_code == 401


def test_keys_may_come_from_a_file_where_there_is_no_network(settings: Settings, models_dir: Path) -> None:
    (settings.data_dir / "keys.json").write_bytes(key_set())
    everywhere = replace(with_issuer(settings, 'jwks_file = "keys.json"'), host="0.0.0.0")  # noqa: S104
    with serving(everywhere, models_dir) as running:  # an issuer is enough to be reachable from elsewhere
        assert running.score(headers=bearer(token("ES256"))).status_code == 200
        assert running.score().status_code == 401


def test_a_wrong_issuers_file_refuses_the_start(settings: Settings, models_dir: Path) -> None:
    with (
        pytest.raises(InvalidSettings, match="jwks_file"),
        serving(with_issuer(settings, 'jwks_file = "missing.json"'), models_dir),
    ):
        pass


@pytest.mark.req("REQ-171")
def test_a_token_for_one_use_is_accepted_once(settings: Settings, models_dir: Path, keys: KeyServer) -> None:
    with serving(with_issuer(settings, f'jwks_url = "{keys.url}"', one_time=True), models_dir) as running:
        once = bearer(token(jti="call-1"))
        assert running.client.get("/v1/nowhere", headers=once).status_code == 404  # does not use it
        assert running.score(headers=once).status_code == 200
        assert running.score(headers=once).status_code == 401
        assert refusals(running, "token_replayed") == 1


def test_an_issuer_with_too_many_tokens_for_one_use_gets_503(
    settings: Settings, models_dir: Path, keys: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(used_tokens, "MAX_USED", 1)
    key = create_key(settings, ["score"])
    with serving(with_issuer(settings, f'jwks_url = "{keys.url}"', one_time=True), models_dir) as running:
        assert running.score(headers=bearer(token(jti="call-1"))).status_code == 200
        refused = running.score(headers=bearer(token(jti="call-2")))
        assert (refused.status_code, refused.json()["type"]) == (503, "/guide#problem-queue-full")
        assert "one use" in refused.json()["detail"]
        assert int(refused.headers["Retry-After"]) >= 1
        assert running.score(headers=bearer(key)).status_code == 200
        assert refusals(running, "token_memory_full") == 1
        assert refusals(running, "token_replayed") == 0


def test_a_caller_over_its_rate_keeps_its_token_for_one_use(
    settings: Settings, models_dir: Path, keys: KeyServer
) -> None:
    """Otherwise a caller that sends more than it may would fill the memory for all callers of its issuer."""
    slow = replace(settings, rate_per_second=1.0, rate_burst=1)
    with serving(with_issuer(slow, f'jwks_url = "{keys.url}"', one_time=True), models_dir) as running:
        answers = [running.score(headers=bearer(token(jti=f"call-{number}"))).status_code for number in range(5)]
        assert answers.count(429) >= 3
        kept = bearer(token(jti="call-4"))
        while (again := running.score(headers=kept)).status_code == 429:
            time.sleep(0.1)
        assert again.status_code == 200
        assert running.score(headers=kept).status_code == 401
