"""Requests that are sent without waiting for the answers: a few are served in order, many are not held in memory."""

import json
import random
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TypeVar

import pytest
import structlog

from app.web import server
from app.web.server import MAX_WAITING, GuardedProtocol
from tests.web.serving import READING, SCORE, Running
from tests.web.test_fail_closed import nothing_can_be_written
from tests.web.test_protocol import connect, everything

pytestmark = pytest.mark.slow

ANSWER = re.compile(rb"HTTP/1\.1 (\d{3}) .*?\r\n\r\n", re.DOTALL)
T = TypeVar("T")
LENGTH = re.compile(rb"content-length: (\d+)")


def scoring(running: Running, diameter: float, last: bool = False) -> bytes:
    body = json.dumps({**READING, "diameter_mm": diameter}).encode()
    host = running.url.removeprefix("http://")
    head = f"POST {SCORE} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n" * last + b"\r\n" + body


def asking(running: Running, path: str = "/health/live") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {running.url.removeprefix('http://')}\r\n\r\n".encode()


def answers(received: bytes) -> Iterator[tuple[int, bytes]]:
    """Status and body, one after the other."""
    while received:
        head = ANSWER.match(received)
        assert head, received[:200]
        length = LENGTH.search(head[0])
        assert length
        end = head.end() + int(length[1])
        yield int(head[1]), received[head.end() : end]
        received = received[end:]


def diameters(received: bytes) -> list[float]:
    found = list(answers(received))
    assert {status for status, _ in found} == {200}
    return [json.loads(body)["input"]["diameter_mm"] for _, body in found]


def protocols(running: Running) -> list[GuardedProtocol]:
    return [each for each in running.server.server_state.connections if isinstance(each, GuardedProtocol)]


def eventually(look: Callable[[], list[T]]) -> list[T]:
    until = time.monotonic() + 30
    while not (found := look()) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def test_fifty_requests_sent_at_once_are_answered_in_order(shared: Running) -> None:
    asked = [30 + number / 10 for number in range(50)]
    with closing(connect(shared)) as connection:
        connection.sendall(b"".join(scoring(shared, each, last=each == asked[-1]) for each in asked))
        assert diameters(everything(connection)) == asked


@pytest.mark.parametrize("seed", range(4))
def test_wherever_the_bytes_are_cut_they_are_answered_in_order(shared: Running, seed: int) -> None:
    rng, asked = random.Random(seed), [30 + number / 10 for number in range(50)]  # noqa: S311 - not for secrets
    sent = b"".join(scoring(shared, each, last=each == asked[-1]) for each in asked)
    cuts = sorted(rng.sample(range(1, len(sent)), 120))
    with closing(connect(shared)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
            connection.sendall(sent[start:end])
            if rng.random() < 0.2:
                time.sleep(0.002)  # so that some pieces are read alone
        assert diameters(everything(connection)) == asked


def test_a_connection_asks_on_after_its_queue_was_answered(shared: Running) -> None:
    with closing(connect(shared)) as connection:
        for _ in range(3):
            connection.sendall(asking(shared) * 40)
            received = b""
            while received.count(b'"alive"') < 40:
                received += connection.recv(65536)
            assert [status for status, _ in answers(received)] == [200] * 40
        connection.sendall(scoring(shared, 41.0, last=True))
        assert diameters(everything(connection)) == [41.0]


def test_more_than_may_wait_end_the_connection_after_the_answer_in_flight(shared: Running) -> None:
    with closing(connect(shared)) as connection:
        connection.sendall(asking(shared) * (MAX_WAITING + 2))
        received = list(answers(everything(connection)))
    assert [status for status, _ in received] == [200, 429]
    assert json.loads(received[-1][1])["type"].endswith("over-rate")


def test_as_many_as_may_wait_are_answered(shared: Running) -> None:
    with closing(connect(shared)) as connection:
        sent = asking(shared) * MAX_WAITING + scoring(shared, 41.0, last=True)
        connection.sendall(sent)
        assert [status for status, _ in answers(everything(connection))] == [200] * (MAX_WAITING + 1)


@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.req("REQ-104")
def test_an_endless_stream_is_neither_read_nor_held(
    shared: Running, monkeypatch: pytest.MonkeyPatch, bare: bool
) -> None:
    monkeypatch.setattr(server, "LINGER_SECONDS", 3600.0)  # refused, and not yet closed: what does it hold?
    flood = (b"GET / HTTP/1.1\r\n\r\n" if bare else asking(shared, "/")) * 300_000
    with closing(connect(shared)) as connection:
        connection.settimeout(1.0)
        with pytest.raises(TimeoutError):  # nobody reads: the buffers of the system are full
            connection.sendall(flood)
        [held] = eventually(lambda: [each for each in protocols(shared) if each.flow.read_paused])
        assert len(held.pipeline) <= MAX_WAITING
        shared.loop.call_soon_threadsafe(held.transport.abort)
    assert shared.client.get("/health/live").status_code == 200


def test_what_is_no_http_is_refused_after_the_answers_to_what_came_before(shared: Running) -> None:
    with closing(connect(shared)) as connection:
        connection.sendall(scoring(shared, 40.0) + scoring(shared, 41.0) + b"NONSENSE\r\n\r\n")
        received = list(answers(everything(connection)))
    assert [status for status, _ in received] == [200, 200, 400]


def test_a_body_that_breaks_off_is_refused_after_the_answers_to_what_came_before(shared: Running) -> None:
    broken = (
        asking(shared, SCORE).replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    )
    with closing(connect(shared)) as connection:
        connection.sendall(scoring(shared, 40.0) + scoring(shared, 41.0) + broken + b"nonsense\r\n")
        received = list(answers(everything(connection)))
    assert [status for status, _ in received] == [200, 200, 400]


def test_time_in_which_nobody_reads_is_not_the_senders(shared: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second body waits because the first request does, longer than a body may take."""
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.5)
    second = scoring(shared, 41.0, last=True)
    with closing(connect(shared)) as connection:
        with nothing_can_be_written(shared.settings):  # so no score leaves
            connection.sendall(scoring(shared, 40.0) + second[:-10])
            time.sleep(1.0)
        connection.sendall(second[-10:])
        assert diameters(everything(connection)) == [40.0, 41.0]


def test_a_client_that_leaves_with_requests_waiting_is_no_defect(shared: Running) -> None:
    with structlog.testing.capture_logs() as lines:
        with nothing_can_be_written(shared.settings), closing(connect(shared)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leaves with a reset
            connection.sendall(scoring(shared, 40.0) + scoring(shared, 41.0) + scoring(shared, 42.0))
            eventually(lambda: [each for each in protocols(shared) if len(each.pipeline) == 2])
        eventually(lambda: [True] if not [each for each in protocols(shared) if each.pipeline] else [])
        assert shared.score().status_code == 200
    assert [line for line in lines if line["log_level"] == "error"] == []
