"""Bodies that take long: a credential must be valid whenever something of them is scored, not only when they begin."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BufferedReader
from pathlib import Path
from typing import Any

import pytest

from app.clock import utc_now
from app.database.keys import key_id_of
from app.services.manage_keys import revoke_key
from app.settings import Settings
from tests.issuers import OTHER_RSA_KEY, KeyServer, key_server, key_set, token
from tests.web.serving import Running, bearer, create_key, serving
from tests.web.test_batch import BATCH, HEADER, ITEM, ROW
from tests.web.test_tokens import refusals, with_issuer

ITEM_LINE = json.dumps(ITEM).encode() + b"\n"
BATCH_OF_TWO = json.dumps({"items": [ITEM, ITEM]}).encode()
HALF = len(BATCH_OF_TWO) // 2
LEEWAY_SECONDS = 60.0


class Upload:
    """A body in pieces, on a connection of its own."""

    def __init__(self, connection: socket.socket, reading: BufferedReader) -> None:
        self._connection, self._reading = connection, reading

    def send(self, piece: bytes) -> None:
        self._connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))

    def end(self) -> None:
        self._connection.sendall(b"0\r\n\r\n")

    def read_until(self, wanted: bytes) -> bytes:
        """The first line that begins so; none of the lines before it may be a result."""
        while not (received := self._reading.readline()).startswith(wanted):
            assert received, "the connection has ended"
            assert not received.startswith((b'{"index"', b"0,"))
        return received


@contextmanager
def upload(running: Running, credential: str, media_type: str) -> Iterator[Upload]:
    host, port = running.url.removeprefix("http://").split(":")
    sent = {"Host": f"{host}:{port}", "Content-Type": media_type, "Transfer-Encoding": "chunked", **bearer(credential)}
    head = [f"POST {BATCH} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    with socket.create_connection((host, int(port)), timeout=20) as connection, connection.makefile("rb") as reading:
        connection.sendall("\r\n".join([*head, "", ""]).encode())
        yield Upload(connection, reading)


@pytest.fixture
def keys() -> Iterator[KeyServer]:
    with key_server() as served:
        yield served


@pytest.fixture
def issued(settings: Settings, models_dir: Path, keys: KeyServer) -> Iterator[Running]:
    """A service that takes the tokens of an issuer, some of them once."""
    with serving(with_issuer(settings, f'jwks_url = "{keys.url}"', one_time=True), models_dir) as running:
        yield running


def token_for_one_use() -> str:
    return token(jti="call-1")


def pass_seconds(running: Running, seconds: float) -> None:
    running.runtime.clock = lambda: utc_now() + timedelta(seconds=seconds)


def wait_for_a_slot(running: Running) -> None:
    """Until the service has read the headers, and so has accepted the credential."""

    async def wait() -> None:
        while not running.runtime.batches.slots.taken:
            await asyncio.sleep(0.01)

    running.inside(wait())


@pytest.mark.req("REQ-091")
@pytest.mark.parametrize(
    ("media_type", "first", "result", "next_piece", "problem"),
    [
        ("application/x-ndjson", ITEM_LINE, b'{"index"', ITEM_LINE, b'{"problem"'),
        ("text/csv", f"{HEADER}\n{ROW}\n".encode(), b"0,", f"{ROW}\n".encode(), b","),
    ],
    ids=["ndjson", "csv"],
)
def test_a_stream_ends_when_its_token_has_expired(
    issued: Running, media_type: str, first: bytes, result: bytes, next_piece: bytes, problem: bytes
) -> None:
    with upload(issued, token_for_one_use(), media_type) as body:
        body.send(first)
        body.read_until(result)
        pass_seconds(issued, 300 + LEEWAY_SECONDS - 10)  # clocks may differ, as when the request begins
        body.send(next_piece)
        body.read_until(result.replace(b"0,", b"1,"))
        pass_seconds(issued, 300 + LEEWAY_SECONDS)
        body.send(next_piece)
        assert b"no-credential" in body.read_until(problem)
    assert len(issued.records("score")) == 2
    assert refusals(issued, "token_expired") == 1


def test_a_stream_ends_when_its_issuer_no_longer_has_the_key(issued: Running, keys: KeyServer) -> None:
    with upload(issued, token_for_one_use(), "application/x-ndjson") as body:
        body.send(ITEM_LINE)
        body.read_until(b'{"index"')
        keys.content = key_set({"new": OTHER_RSA_KEY})
        [of_issuer] = issued.runtime.tokens.issuers
        of_issuer._tried_at -= 600
        issued.inside(of_issuer.refresh())
        body.send(ITEM_LINE)
        assert b"no-credential" in body.read_until(b'{"problem"')
    assert refusals(issued, "token_key") == 1


def test_an_item_without_an_end_of_line_is_not_scored_after_the_token_has_expired(issued: Running) -> None:
    """It is scored when the body ends, which may be long after it arrived."""
    with upload(issued, token_for_one_use(), "application/x-ndjson") as body:
        body.send(ITEM_LINE + ITEM_LINE.strip())
        body.read_until(b'{"index"')
        pass_seconds(issued, 300 + LEEWAY_SECONDS)
        body.end()
        assert b"no-credential" in body.read_until(b'{"problem"')
    assert len(issued.records("score")) == 1


@pytest.mark.parametrize("rest", [BATCH_OF_TWO[HALF:], b""], ids=["before the last piece", "before the end"])
def test_a_json_batch_is_not_scored_once_its_token_has_expired(issued: Running, rest: bytes) -> None:
    with upload(issued, token_for_one_use(), "application/json") as body:
        body.send(BATCH_OF_TWO[:HALF] if rest else BATCH_OF_TWO)
        wait_for_a_slot(issued)
        pass_seconds(issued, 300 + LEEWAY_SECONDS)
        if rest:
            body.send(rest)
        body.end()
        assert b"401" in body.read_until(b"HTTP/1.1 ")
    assert issued.records("score") == []
    assert refusals(issued, "token_expired") == 1


@pytest.mark.req("REQ-091")
def test_a_json_batch_is_not_scored_once_its_key_is_revoked(running: Running) -> None:
    key = create_key(running.settings, ["score"])
    running.inside(running.runtime.poller.refresh())
    with upload(running, key, "application/json") as body:
        body.send(BATCH_OF_TWO[:HALF])
        wait_for_a_slot(running)
        asyncio.run(revoke_key(running.settings, "test", str(key_id_of(key))))
        running.inside(running.runtime.poller.refresh())
        body.send(BATCH_OF_TWO[HALF:])
        body.end()
        assert b"401" in body.read_until(b"HTTP/1.1 ")
    assert running.records("score") == []
    assert refusals(running, "key_revoked") == 1


def test_a_json_batch_of_this_machine_is_not_scored_once_a_key_exists(running: Running) -> None:
    with upload(running, "", "application/json") as body:
        body.send(BATCH_OF_TWO[:HALF])
        wait_for_a_slot(running)
        create_key(running.settings, ["score"])
        running.inside(running.runtime.poller.refresh())
        body.send(BATCH_OF_TWO[HALF:])
        body.end()
        assert b"401" in body.read_until(b"HTTP/1.1 ")
    assert refusals(running, "none") == 1


def test_a_body_that_stays_valid_is_scored(issued: Running) -> None:
    with upload(issued, token_for_one_use(), "application/json") as body:
        body.send(BATCH_OF_TWO[:HALF])
        wait_for_a_slot(issued)
        pass_seconds(issued, 30)
        body.send(BATCH_OF_TWO[HALF:])
        body.end()
        assert b"200" in body.read_until(b"HTTP/1.1 ")


def seen(running: Running) -> dict[str, Any]:
    samples = running.runtime.metrics.registry.collect()
    return {s.labels["reason"]: s.value for m in samples for s in m.samples if "credential_refusals_total" in s.name}


def test_every_refused_request_counts_once(running: Running) -> None:
    key = create_key(running.settings, ["score"])
    running.inside(running.runtime.poller.refresh())
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    answers = [running.score(headers=bearer(wrong)).status_code for _ in range(22)]
    assert (answers.count(401), answers.count(429)) == (20, 2)
    assert running.score().status_code == 401
    assert running.client.get("/v1/sites", headers=bearer(key)).status_code == 403
    assert seen(running) == {"key_wrong": 20, "locked_out": 2, "none": 1, "scope_missing": 1}


def test_a_stream_that_is_refused_counts_once(running: Running) -> None:
    key = create_key(running.settings, ["score"])
    running.inside(running.runtime.poller.refresh())
    with upload(running, key, "application/x-ndjson") as body:
        body.send(ITEM_LINE)
        body.read_until(b'{"index"')
        asyncio.run(revoke_key(running.settings, "test", str(key_id_of(key))))
        running.inside(running.runtime.poller.refresh())
        body.send(ITEM_LINE)
        body.read_until(b'{"problem"')
    assert seen(running) == {"key_revoked": 1}
