"""Batches at the same time: few of them, each in a slot that is free when it ends; single requests do not wait."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.audit.blocks import expand
from app.runtime.workers import SLOTS
from app.services import score_batch
from app.services.score_block import score_block
from app.settings import Settings
from tests.web.serving import Running, bearer, create_key, serving
from tests.web.test_batch import BATCH, ITEM, JSON, lines

SLOTS_OF_ONE_CALLER = SLOTS // 2
WAIT_SECONDS = 30


class Stream:
    """A batch of lines on a connection of its own, which goes on until it is ended or left."""

    def __init__(self, running: Running, key: str, request_id: str = "") -> None:
        host, port = running.url.removeprefix("http://").split(":")
        self._connection = socket.create_connection((host, int(port)), timeout=WAIT_SECONDS)
        self._reading = self._connection.makefile("rb")
        sent = {"Host": f"{host}:{port}", "Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked"}
        sent |= bearer(key) | ({"X-Request-ID": request_id} if request_id else {})
        head = [f"POST {BATCH} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        self._connection.sendall("\r\n".join([*head, "", ""]).encode())

    def score(self, **more: Any) -> Any:
        """Send one item, and wait for its result."""
        line = lines([ITEM | more])
        self._connection.sendall(b"%x\r\n%b\r\n" % (len(line), line))
        while not (received := self._reading.readline()).startswith(b'{"index"'):
            assert received
        return json.loads(received)

    def end(self) -> str:
        self._connection.sendall(b"0\r\n\r\n")
        received = b"".join(iter(self._reading.readline, b"0\r\n")).decode()
        self.leave()
        return received

    def leave(self) -> None:
        self._reading.close()
        self._connection.close()

    def refusal(self) -> tuple[str, dict[str, str]]:
        """The status line and the headers."""
        status = self._reading.readline().decode()
        fields = iter(lambda: self._reading.readline().decode().strip(), "")
        return status, dict(field.lower().split(": ", 1) for field in fields)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_progress(running: Running) -> int:
    return running.runtime.batches.slots.taken.total()


@contextmanager
def streams(running: Running, key: str, count: int) -> Iterator[list[Stream]]:
    """Each has scored one item."""
    with ExitStack() as stack:
        opened = [Stream(running, key) for _ in range(count)]
        for one in opened:
            stack.callback(one.leave)
            one.score()
        yield opened


@pytest.fixture
def keyed(settings: Settings, models_dir: Path) -> Iterator[tuple[Running, list[str]]]:
    keys = [create_key(settings, ["score"]) for _ in range(3)]
    with serving(settings, models_dir) as running:
        yield running, keys


@pytest.mark.req("REQ-160")
def test_one_caller_cannot_take_every_slot_and_a_slot_that_ended_is_free(keyed: tuple[Running, list[str]]) -> None:
    running, (one, other, third) = keyed
    with streams(running, one, SLOTS_OF_ONE_CALLER) as mine, ExitStack() as stack:
        refused = Stream(running, one)  # it has sent headers alone: its body is not waited for
        status, headers = refused.refusal()
        refused.leave()
        assert (status.split()[1], headers["retry-after"]) == ("503", "1")
        answer = running.client.post(BATCH, json={"items": [ITEM]}, headers=bearer(one))
        assert (answer.status_code, answer.json()["type"]) == (503, "/guide#problem-queue-full")
        assert "batches" in answer.json()["detail"]
        stack.enter_context(streams(running, other, SLOTS - SLOTS_OF_ONE_CALLER))
        assert running.client.post(BATCH, json={"items": [ITEM]}, headers=bearer(third)).status_code == 503
        assert running.score(headers=bearer(third)).status_code == 200
        assert '"succeeded":1' in mine[0].end()
        wait_until(lambda: in_progress(running) == SLOTS - 1)
        assert running.client.post(BATCH, json={"items": [ITEM]}, headers=bearer(third)).status_code == 200
    wait_until(lambda: in_progress(running) == 0)
    assert {record.output["problem"] for record in running.records("refusal")} == {"queue-full"}


@pytest.mark.parametrize("content", [b'{"items": [1,]}', b"{}", b'{"items": [' + b"1," * 10_000 + b"1]}"])
def test_a_batch_that_is_refused_frees_its_slot(shared: Running, content: bytes) -> None:
    for _ in range(SLOTS + 1):
        assert shared.client.post(BATCH, content=content, headers=JSON).status_code in (400, 422)
    assert in_progress(shared) == 0


@pytest.mark.req("REQ-070")
def test_a_client_that_leaves_a_stream_frees_its_slot_and_every_result_that_it_got_is_recorded(
    keyed: tuple[Running, list[str]],
) -> None:
    running, (key, *_) = keyed
    for number in range(SLOTS + 1):  # more than there are slots
        stream = Stream(running, key, f"left-{number}")
        scores = [stream.score(diameter_mm=30 + k)["score"]["expected_ns"] for k in range(3)]
        stream.leave()
        wait_until(lambda: in_progress(running) == 0)
        assert recorded(running, f"left-{number}") == scores
    wait_until(lambda: not running.server.server_state.connections)
    wait_until(lambda: running.runtime.writer.depth == 0)


def recorded(running: Running, request_id: str) -> list[float]:
    """The score of each item that is on record, in order."""
    rows = [row for row in running.records("score") if row.request_id == request_id]
    return [item["output"]["score"]["expected_ns"] for row in rows for item in expand(vars(row))]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The second block of a batch begins, and waits until the test lets it go on."""
    begun, may_go_on, blocks = threading.Event(), threading.Event(), list[int]()

    def held_score(*arguments: Any) -> Any:
        blocks.append(1)
        if len(blocks) == 2:
            begun.set()
            assert may_go_on.wait(WAIT_SECONDS)
        return score_block(*arguments)

    monkeypatch.setattr(score_batch, "BLOCK_ITEMS", 2)
    monkeypatch.setattr(score_batch, "score_block", held_score)
    yield begun, may_go_on
    may_go_on.set()


def test_a_client_that_leaves_a_json_batch_frees_its_slot_and_the_rest_is_not_scored(
    running: Running, held: tuple[threading.Event, threading.Event]
) -> None:
    begun, may_go_on = held
    body = json.dumps({"items": [ITEM | {"diameter_mm": 30 + k} for k in range(8)]}).encode()
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_SECONDS) as connection:
        head = f"POST {BATCH} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert begun.wait(WAIT_SECONDS)
    wait_until(lambda: not running.server.server_state.connections)  # the service has noticed
    assert in_progress(running) == 1  # the block in progress is scored and recorded to its end
    may_go_on.set()
    wait_until(lambda: in_progress(running) == 0)
    assert len(running.records("score")) == 2  # two blocks of four
    assert running.client.post(BATCH, json={"items": [ITEM]}).status_code == 200


def test_single_requests_are_answered_while_a_batch_is_computed(
    shared: Running, held: tuple[threading.Event, threading.Event]
) -> None:
    begun, may_go_on = held
    answers: list[httpx.Response] = []
    send = partial(shared.client.post, BATCH, json={"items": [ITEM] * 6}, timeout=WAIT_SECONDS)
    batch = threading.Thread(target=lambda: answers.append(send()))
    batch.start()
    assert begun.wait(WAIT_SECONDS)
    with httpx.Client(base_url=shared.url, timeout=WAIT_SECONDS) as other:
        assert [other.get("/v1/sites").status_code, shared.score().status_code] == [200, 200]
    assert answers == []
    may_go_on.set()
    batch.join(WAIT_SECONDS)
    assert [(answer.status_code, answer.json()["succeeded"]) for answer in answers] == [(200, 6)]
