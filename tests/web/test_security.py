import asyncio
import http.client
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from fastapi import APIRouter, Depends, Security
from sqlalchemy import text

from app.audit.changes import short_chain
from app.audit.records import NewRecord
from app.clock import timestamp, utc_now
from app.database.engine import Database
from app.database.keys import revoke_key
from app.database.records import add_records
from app.errors import InvalidSettings
from app.services.manage_keys import list_keys
from app.settings import Settings
from app.web.app import ROUTES
from app.web.route import ApiRoute
from app.web.security import _own_hosts, allow_anonymous, authorize
from tests.web.serving import READING, SCORE, Running, bearer, create_key, on_database, serving

# The page of a card holds no data; its content has a route of its own, which needs a key.
CARD = "/models/{site}/{version}"
OPEN = {
    "/health/live",
    "/health/ready",
    "/",
    "/guide",
    "/guide/{page}",
    "/guide/pictures/{picture}",
    CARD,
    "/docs",
    "/redoc",
    "/openapi.json",
    "/assets/{name}",
}
REQUIRED_SCOPES = {
    ("POST", "/v1/sites/{site}/score"): "score",
    ("POST", "/v1/studies/score"): "score",
    ("POST", "/v1/batch/score"): "score",
    ("POST", "/v1/sites/{site}/chart"): "score",
    ("GET", "/v1/sites/{site}/reliability-map"): "model:read",
    ("GET", "/v1/sites"): "model:read",
    ("GET", "/v1/limits"): "model:read",
    ("GET", f"{CARD}/content"): "model:read",
    ("GET", "/v1/models"): "model:read",
    ("GET", "/v1/models/{site}/{version}"): "model:read",
    ("GET", "/v1/models/{site}/history"): "model:read",
    ("POST", "/v1/models/{site}/activate"): "admin",
    ("GET", "/v1/selftest"): "model:read",
    ("GET", "/metrics"): "model:read",
    ("GET", "/v1/audit/records/{request_id}"): "audit:read",
    ("GET", "/v1/audit/records"): "audit:read",
    ("POST", "/v1/audit/records/{request_id}/replay"): "audit:read",
}


def path_of(template: str) -> str:
    parts = {"{site}": "SoV", "{version}": "1.0.0", "{request_id}": "nobody", "{name}": "page.css"}
    parts |= {"{page}": "clinicians", "{picture}": "uncertain-reference.svg"}
    for name, value in parts.items():
        template = template.replace(name, value)
    return template


def wait_for_keys(running: Running) -> None:
    """The promise is two seconds; how long it took is not this test's business."""
    for _ in range(600):
        if running.runtime.keyring.has_seen_keys:
            return
        time.sleep(0.05)
    raise AssertionError("the key was not noticed")


@pytest.mark.req("REQ-090")
def test_every_route_requires_the_scope_that_was_decided() -> None:
    required = {(route.method, route.path): route.required_scopes for route in ROUTES if route.path not in OPEN}
    assert required == {name: (scope,) for name, scope in REQUIRED_SCOPES.items()}
    assert {route.path for route in ROUTES if not route.required_scopes} == OPEN


def test_a_route_that_declares_no_access_check_is_refused_at_import() -> None:
    async def forgotten() -> None: ...

    with pytest.raises(TypeError, match="/forgotten must declare one access check"):
        APIRouter(route_class=ApiRoute).add_api_route("/forgotten", forgotten)


def test_a_route_that_declares_two_access_checks_is_refused_at_import() -> None:
    async def ambiguous() -> None: ...

    checks = [Depends(allow_anonymous), Security(authorize, scopes=["admin"])]
    with pytest.raises(TypeError, match="/ambiguous must declare one access check"):
        APIRouter(route_class=ApiRoute).add_api_route("/ambiguous", ambiguous, dependencies=checks)


def test_without_a_key_this_machine_may_score_and_read_models_and_nothing_else(shared: Running) -> None:
    for (method, path), scope in REQUIRED_SCOPES.items():
        answer = shared.client.request(method, path_of(path))
        assert (answer.status_code == 403) == (scope in ("admin", "audit:read")), path
    assert shared.score().status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""])
@pytest.mark.req("REQ-093")
def test_without_a_key_a_strange_host_is_refused_everywhere(shared: Running, host: str) -> None:
    """A web page could let its own name point to 127.0.0.1 and read what comes back."""
    port = shared.url.rsplit(":", 1)[1]
    for path in ("/v1/sites", "/docs", "/health/ready", "/metrics"):
        answer = shared.client.get(path, headers={"Host": host.format(port=port)})
        assert answer.status_code == 400, path
        assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "[::1]", "127.0.0.1"])
def test_the_names_of_this_machine_are_accepted(shared: Running, name: str) -> None:
    host = f"{name}:{shared.url.rsplit(':', 1)[1]}"
    assert shared.client.get("/v1/sites", headers={"Host": host}).status_code == 200


def test_a_request_without_a_host_is_refused(shared: Running) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port))
    connection.putrequest("GET", "/v1/sites", skip_host=True)
    connection.endheaders()
    assert connection.getresponse().status == 400
    connection.close()


def test_once_a_key_exists_a_credential_is_required(running: Running) -> None:
    assert running.score().status_code == 200
    key = create_key(running.settings, ["score"])
    wait_for_keys(running)
    refused = running.score()
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert running.score(headers=bearer(key)).status_code == 200
    assert running.client.get("/v1/sites", headers=bearer(key)).status_code == 403
    for path in OPEN:
        assert running.client.get(path_of(path)).status_code == 200, path
    host = {"Host": "service.example"}
    assert running.score(headers=bearer(key) | host).status_code == 200


def test_keys_that_somebody_deleted_do_not_allow_anonymous_callers_again(settings: Settings, models_dir: Path) -> None:
    """Whoever can write the database can delete them, and wait for a restart; their records are still there."""
    create_key(settings, ["score"])

    async def delete(database: Database) -> None:
        async with database.writing() as connection:
            await connection.execute(text("DELETE FROM api_keys"))

    on_database(settings, delete)
    with serving(settings, models_dir) as running:
        assert running.score().status_code == 401
        key = create_key(settings, ["score"])
        running.inside(running.runtime.poller.refresh())
        assert running.score(headers=bearer(key)).status_code == 200


def test_an_erased_patient_is_no_key(settings: Settings, models_dir: Path) -> None:
    """Their records are of the same kind."""
    erased = NewRecord("key", utc_now(), "test", output={"step": "erased", "data_key": uuid4(), "records": 1})

    async def add(database: Database) -> None:
        async with database.writing() as connection:
            await add_records(connection, short_chain([erased], {}, utc_now()))

    on_database(settings, add)
    with serving(settings, models_dir) as running:
        assert running.score().status_code == 200


def test_a_scope_allows_its_own_routes_only(settings: Settings, models_dir: Path) -> None:
    keys = {scope: create_key(settings, [scope]) for scope in ("score", "model:read", "audit:read", "admin")}
    with serving(settings, models_dir) as running:
        for (method, path), needed in REQUIRED_SCOPES.items():
            for scope, key in keys.items():
                answer = running.client.request(method, path_of(path), headers=bearer(key))
                assert (answer.status_code == 403) == (scope != needed), (path, scope)
            assert running.client.request(method, path_of(path)).status_code == 401, path


@pytest.mark.req("REQ-091")
def test_keys_that_are_wrong_expired_or_revoked_open_nothing(settings: Settings, models_dir: Path) -> None:
    good = create_key(settings, ["score"])
    expired = create_key(settings, ["score"], expires=utc_now() - timedelta(seconds=1))
    with serving(settings, models_dir) as running:
        wrong = good[:-1] + ("A" if good[-1] != "A" else "B")
        for sent in (wrong, expired, good.upper(), "-", "nsk_", "x" * 3000, "nsk_\xff"):
            headers = [(b"Authorization", b"Bearer " + sent.encode("latin-1"))]
            answer = httpx.post(running.url + SCORE, json=READING, headers=headers)
            assert answer.status_code == 401
        assert running.score(headers={"Authorization": f"Basic {good}"}).status_code == 401
        assert running.score(headers={"Authorization": f"bearer {good}"}).status_code == 200

        async def revoke(database: Database) -> None:
            async with database.writing() as connection:
                await revoke_key(connection, good.split("_")[1], utc_now())

        on_database(running.settings, revoke)
        for _ in range(600):
            if running.score(headers=bearer(good)).status_code == 401:
                return
            time.sleep(0.05)
        raise AssertionError("the revoked key still opens")


@pytest.mark.req("REQ-092")
def test_without_a_key_it_does_not_start_where_others_can_reach_it(settings: Settings, models_dir: Path) -> None:
    everywhere = replace(settings, host="0.0.0.0")  # noqa: S104 - the point of the test
    with pytest.raises(InvalidSettings, match="no API key exists"), serving(everywhere, models_dir):
        pass
    create_key(settings, ["score"])
    with serving(everywhere, models_dir) as running:
        assert running.score().status_code == 401


def test_metrics_are_open_only_by_their_setting(settings: Settings, models_dir: Path) -> None:
    create_key(settings, ["score"])
    with serving(replace(settings, metrics="open"), models_dir) as running:
        assert running.client.get("/metrics").status_code == 200


def test_the_address_on_which_it_listens_is_its_own_name_too(settings: Settings, models_dir: Path) -> None:
    with serving(replace(settings, host="127.0.0.2"), models_dir) as running:
        assert running.client.get("/v1/sites").status_code == 200


def test_browsers_leave_out_the_port_of_http() -> None:
    assert b"localhost" in _own_hosts("127.0.0.1", 80)
    assert b"localhost" not in _own_hosts("127.0.0.1", 8000)
    assert b"[::1]:8000" in _own_hosts("::1", 8000)


@pytest.mark.req("REQ-099")
def test_a_key_and_its_name_stand_in_the_record_and_its_last_use_on_the_list(
    settings: Settings, models_dir: Path
) -> None:
    """Written when the service stops, and once a minute before; a wrong secret is no use."""
    used, unused = (create_key(settings, ["score"]) for _ in range(2))
    before = timestamp(utc_now())
    with serving(settings, models_dir) as running:
        assert running.score(headers=bearer(used)).status_code == 200
        assert running.score(headers=bearer(unused[:-1])).status_code == 401
    [record] = running.records("score")
    assert record.principal == f"{used.split('_')[1]} test"
    [(first, at), (second, never)] = sorted(
        ((key.key_id, at) for key, at in asyncio.run(list_keys(settings))), key=lambda each: each[1] is None
    )
    assert (first, second, never) == (used.split("_")[1], unused.split("_")[1], None)
    assert before <= str(at) <= timestamp(utc_now())
