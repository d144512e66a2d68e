import asyncio
import hashlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from app.clock import timestamp, utc_now
from app.database.engine import Database, open_database
from app.database.idempotent_answers import delete_expired
from app.errors import AuditUnavailable, DatabaseUnavailable
from app.runtime import idempotent_answers
from app.runtime.credentials import Caller
from app.runtime.idempotent_answers import CLAIMED, IdempotentAnswers
from app.runtime.runtime import Runtime
from app.schemas.answers import ScoreResponse
from app.schemas.requests import SiteRequest
from app.services import score_measurements
from app.settings import Settings
from tests.web.serving import MAN, READING, SCORE, Running, bearer, create_key, on_database, serving

ONCE = {"Idempotency-Key": "5f8f1c1e-6a5b-4c62-9d0f-0c8d3b6f2a11"}
STUDY = {**MAN, "measurements": [{"site": "SoV", "diameter_mm": 41}, {"site": "AA", "diameter_mm": 37}]}


@pytest.mark.req("REQ-170")
def test_a_repeated_request_gets_the_first_answer_and_no_second_score_record(running: Running) -> None:
    first = running.score(headers=ONCE | {"X-Request-ID": "first"})
    again = running.score(headers=ONCE | {"X-Request-ID": "again"})
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["X-Request-ID"] == "again"
    assert "Idempotent-Replayed" not in first.headers
    assert [record.request_id for record in running.records("score")] == ["first"]
    [read] = running.records("read")
    assert (read.request_id, read.input) == ("again", {"repeats": "first"})


def test_a_study_is_answered_once_too(running: Running) -> None:
    first, again = (running.score(STUDY, "/v1/studies/score", headers=ONCE) for _ in range(2))
    assert first.content == again.content
    assert len(running.records("score")) == 2


@pytest.mark.req("REQ-170")
def test_another_body_or_address_with_the_same_key_is_refused(running: Running) -> None:
    assert running.score(headers=ONCE).status_code == 200
    for body, path in (({**READING, "diameter_mm": 42}, SCORE), (READING, "/v1/sites/AA/score")):
        refused = running.score(body, path, headers=ONCE)
        assert refused.status_code == 422
        assert refused.json()["type"].endswith("key-reused")
    assert len(running.records("score")) == 1


def test_of_many_at_once_one_is_scored_and_the_others_wait_or_get_its_answer(running: Running) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: running.score(headers=ONCE), range(16)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len({answer.content for answer in answers if answer.status_code == 200}) == 1
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json()["type"].endswith("still-answering")
            assert answer.headers["Retry-After"] == "1"
    assert len(running.records("score")) == 1


def test_a_key_belongs_to_its_caller(settings: Settings, models_dir: Path) -> None:
    keys = [create_key(settings, ["score"]) for _ in range(2)]
    with serving(settings, models_dir) as running:
        answers = [running.score(headers=ONCE | bearer(key)) for key in keys]
        assert "Idempotent-Replayed" not in answers[1].headers
        assert len(running.records("score")) == 2


def test_another_replica_has_the_answer_too(settings: Settings, models_dir: Path) -> None:
    with serving(settings, models_dir) as running:
        first = running.score(headers=ONCE)
    with serving(settings, models_dir) as running:  # SQLite serves one process at a time
        again = running.score(headers=ONCE)
        assert again.content == first.content
        assert again.headers["Idempotent-Replayed"] == "true"


@pytest.mark.req("REQ-170")
def test_of_many_at_once_at_two_replicas_one_is_scored(settings: Settings, models_dir: Path, tmp_path: Path) -> None:
    if not settings.database_url:
        pytest.skip("an embedded database has one process")
    key = create_key(settings, ["score", "audit:read"])
    shared = replace(settings, subject_key="a key of tests, long enough to be one")
    with ExitStack() as stack, ThreadPoolExecutor(8) as threads:
        replicas = [
            stack.enter_context(serving(replace(shared, data_dir=tmp_path / name), models_dir)) for name in ("a", "b")
        ]

        def send(number: int) -> httpx.Response:
            return replicas[number % 2].score(headers={"Idempotency-Key": f"{number // 8}", **bearer(key)})

        for first in range(0, 80, 8):
            answers = list(threads.map(send, range(first, first + 8)))
            assert {answer.status_code for answer in answers} <= {200, 409}
            assert len({answer.content for answer in answers if answer.status_code == 200}) == 1
        assert len(replicas[0].records("score")) == 10


@pytest.mark.req("REQ-079")
def test_a_reader_of_the_database_cannot_find_out_by_guessing_what_was_sent(running: Running) -> None:
    """A reference has few possible values, and everything else in a request may be known."""
    reference, key = "MRN-004711", ONCE["Idempotency-Key"]
    body = json.dumps(READING | {"subject": reference})
    answer = running.client.post(SCORE, content=body, headers=ONCE | {"Content-Type": "application/json"})
    assert answer.status_code == 200
    [record] = running.records("score")
    guesses = [reference, body, key, f"{record.principal}\0{key}", "\0".join(["POST", SCORE, "", body])]
    hashes = {
        hashlib.new(name, guess.encode()).digest() for name in ("sha256", "sha512", "blake2s") for guess in guesses
    }

    async def stored(database: Database) -> set[bytes]:
        async with database.reading() as connection:
            found = await connection.execute(text("SELECT key_sha256, request_sha256 FROM idempotent_answers"))
            return set(found.one())

    assert not on_database(running.settings, stored) & hashes


def test_an_error_frees_the_key(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise AuditUnavailable

    with monkeypatch.context() as broken:
        broken.setattr(score_measurements, "score_measurement", fail)
        assert running.score(headers=ONCE).status_code == 503
    assert running.score({**READING, "diameter_mm": -1}, headers=ONCE).status_code == 422
    answer = running.score(headers=ONCE)
    assert answer.status_code == 200
    assert "Idempotent-Replayed" not in answer.headers


def test_an_answer_that_cannot_be_stored_frees_the_key(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise DatabaseUnavailable

    with monkeypatch.context() as broken:
        broken.setattr(idempotent_answers, "store_answer", fail)
        assert running.score(headers=ONCE).status_code == 503
    assert running.score(headers=ONCE).status_code == 200


def test_a_database_that_hangs_does_not_delay_the_refusal(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key stays claimed for a few seconds instead. Here the database would hang for a minute."""
    monkeypatch.setattr(idempotent_answers, "SPARE_SECONDS", 0.0)

    async def fail(database: Database, blocker: Database) -> None:
        answers = IdempotentAnswers(database, running.runtime.data_keys, running.runtime.hasher, utc_now)
        async with AsyncExitStack() as stack:

            async def hang() -> bytes:
                other = await stack.enter_async_context(blocker.writing())  # on SQLite nobody else writes from now on
                if running.settings.database_url:
                    await other.execute(text("LOCK TABLE idempotent_answers"))
                raise AuditUnavailable

            deadline = asyncio.get_running_loop().time() + 1.0
            with pytest.raises(AuditUnavailable):
                await asyncio.wait_for(answers.answer("me", b"key", b"request", hang, deadline), 20)

    async def run() -> None:
        database, blocker = (open_database(running.settings, statement_seconds=None) for _ in range(2))
        try:
            await fail(database, blocker)
        finally:
            await database.close()
            await blocker.close()

    asyncio.run(run())


def test_a_request_that_stalls_beyond_its_claim_gets_the_answer_that_was_stored_meanwhile(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    score, stalled, may_go_on = score_measurements.score_measurement, threading.Event(), threading.Event()

    async def stall(runtime: Runtime, caller: Caller, request: SiteRequest) -> ScoreResponse:
        answer = await score(runtime, caller, request)
        if caller.request_id == "first":
            stalled.set()
            await asyncio.to_thread(may_go_on.wait, 30)
        return answer

    monkeypatch.setattr(score_measurements, "score_measurement", stall)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(running.score, headers=ONCE | {"X-Request-ID": "first"})
        assert stalled.wait(30)
        running.runtime.clock = lambda: utc_now() + CLAIMED
        again = running.score(headers=ONCE | {"X-Request-ID": "again"})
        may_go_on.set()
        first = waiting.result(30)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.content == again.content
    assert again.json()["request_id"] == "again"
    assert [answer.headers.get("Idempotent-Replayed") for answer in (first, again)] == ["true", None]
    assert {record.request_id for record in running.records("score")} == {"first", "again"}


def test_after_a_day_the_key_is_free_and_the_answer_deleted(running: Running) -> None:
    assert running.score(headers=ONCE).status_code == 200

    async def deleted(database: Database) -> list[int]:
        async with database.writing() as connection:
            after = [timedelta(hours=23), timedelta(hours=24, minutes=1)]
            return [await delete_expired(connection, timestamp(utc_now() + each)) for each in after]

    assert on_database(running.settings, deleted) == [0, 1]
    assert "Idempotent-Replayed" not in running.score(headers=ONCE).headers


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\u00e9"])
def test_what_is_no_key_is_refused(shared: Running, key: str) -> None:
    refused = shared.score(headers=[(b"Idempotency-Key", key.encode("latin-1"))])
    assert refused.status_code == 400
    assert "Idempotency-Key" in refused.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/sites/SoV/chart", "/v1/batch/score"])
def test_a_route_that_does_not_take_a_key_refuses_it(shared: Running, path: str) -> None:
    """Ignored, it would promise that a repetition is not recorded twice."""
    refused = shared.score(READING, path, headers=ONCE)
    assert (refused.status_code, refused.json()["type"]) == (400, "/guide#problem-bad-request")
    assert "does not take an Idempotency-Key" in refused.json()["detail"]


def test_looking_something_up_may_carry_a_key(shared: Running) -> None:
    """Some clients add one to every request; reading twice changes nothing."""
    assert shared.client.get("/v1/sites", headers=ONCE).status_code == 200
