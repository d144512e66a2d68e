"""No record, no answer: and when the database is back, so is the service."""

import asyncio
import io
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg  # type: ignore[import-untyped]
import httpx
import pytest

from app.audit import writer
from app.database.sqlite import FILE_NAME
from app.settings import Settings
from tests.postgres import PostgresServer
from tests.web.serving import READING, Running


@pytest.fixture
def patient() -> bool:
    return False


@contextmanager
def nothing_can_be_written(settings: Settings) -> Iterator[None]:
    if not settings.database_url:
        blocker = sqlite3.connect(settings.data_dir / FILE_NAME, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            blocker.close()
        return
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(settings.database_url))
        runner.run(connection.execute("BEGIN; LOCK TABLE audit_records IN ACCESS EXCLUSIVE MODE"))
        try:
            yield
        finally:
            runner.run(connection.close())


@pytest.mark.req("REQ-070")
def test_without_a_record_no_score_leaves(running: Running) -> None:
    with nothing_can_be_written(running.settings):
        refused = running.score(headers={"X-Request-ID": "lost"})
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "1"
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert "score" not in refused.json()
    for _ in range(100):
        if running.score(headers={"X-Request-ID": "again"}).status_code == 200:
            break
        time.sleep(0.1)
    given = [record.request_id for record in running.records("score")]
    assert given[-1:] == ["again"]


def test_without_a_record_no_result_of_a_batch_leaves(running: Running) -> None:
    item = {"site": "SoV", **READING}
    bodies = {"application/json": {"items": [item]}, "application/x-ndjson": item}
    with nothing_can_be_written(running.settings):
        for media, body in bodies.items():
            headers = {"Content-Type": media}
            refused = running.client.post("/v1/batch/score", content=json.dumps(body), headers=headers)
            assert (refused.status_code, "score" in refused.json()) == (503, False)


@pytest.mark.req("REQ-110")
def test_readiness_follows_the_audit_and_liveness_does_not(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    assert running.client.get("/health/ready").status_code == 200
    monkeypatch.setattr(writer, "SILENCE_SECONDS", 0.0)  # as if the database had been silent for long
    silent = running.client.get("/health/ready")
    assert silent.status_code == 503
    assert silent.json()["checks"] == {"accepting": True, "models_loaded": True, "audit_writable": False}
    assert running.client.get("/health/live").status_code == 200


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_database_that_could_lose_records_gets_no_score_out(
    running: Running, server: PostgresServer, log: io.StringIO
) -> None:
    running.runtime.writer.durability_seconds = 0.0
    with careless(server):
        refused = eventually(running, 503)
        assert refused.headers["Content-Type"] == "application/problem+json"
        not_ready = running.client.get("/health/ready")
        assert not_ready.status_code == 503
        assert not_ready.json()["checks"]["audit_writable"] is False
        [warning] = not_ready.json()["warnings"]
        assert warning["code"] == "audit_not_durable"
        assert "fsync=off" in warning["message"]
    eventually(running, 200)
    assert running.client.get("/health/ready").json()["warnings"] == []
    events = [json.loads(line)["event"] for line in log.getvalue().splitlines()]
    assert [event for event in events if "durable" in event] == ["audit not durable", "audit durable again"]


@contextmanager
def careless(server: PostgresServer) -> Iterator[None]:
    server.run("ALTER SYSTEM SET fsync = off")
    server.run("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        server.run("ALTER SYSTEM RESET fsync")
        server.run("SELECT pg_reload_conf()")


def eventually(running: Running, status: int) -> httpx.Response:
    """A reload reaches the connections of a server within moments, not at once."""
    for _ in range(600):
        answer = running.score()
        if answer.status_code == status:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"never answered {status}")


def test_while_it_stops_it_is_not_ready_and_still_answers(running: Running) -> None:
    running.runtime.is_draining = True
    stopping = running.client.get("/health/ready")
    assert stopping.status_code == 503
    assert stopping.json()["checks"] == {"accepting": False, "models_loaded": True, "audit_writable": True}
    assert stopping.headers["Content-Type"] == "application/problem+json"
    assert stopping.headers["Connection"] == "close"
    assert running.score().status_code == 200
