"""What arrives slowly, endlessly or not as HTTP at all."""

import json
import socket
import time
from contextlib import closing

import pytest

from app.web import server
from tests.web.serving import READING, SCORE, Running

pytestmark = pytest.mark.slow

BODY = json.dumps(READING).encode()


def connect(running: Running) -> socket.socket:
    host, port = running.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def head(running: Running, length: int = len(BODY)) -> bytes:
    host = running.url.removeprefix("http://")
    lines = (
        f"POST {SCORE} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
    return lines.encode()


def everything(connection: socket.socket) -> bytes:
    """Until the other side closes."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_SECONDS", 0.3)
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.5)


@pytest.mark.parametrize("sent", [b"", b"POST /v1/si", b"POST / HTTP/1.1\r\nHost: a\r\n", b"\r\n\r\n"])
@pytest.mark.req("REQ-102")
def test_headers_that_do_not_come_end_the_connection(hurried: None, shared: Running, sent: bytes) -> None:
    with closing(connect(shared)) as connection:
        connection.sendall(sent)
        assert everything(connection) == b""


def test_a_body_that_does_not_come_ends_the_connection(hurried: None, shared: Running) -> None:
    with closing(connect(shared)) as connection:
        connection.sendall(head(shared) + BODY[:10])
        assert everything(connection) == b""
    assert shared.score().status_code == 200


def test_empty_lines_after_an_answer_do_not_keep_the_connection_for_ever(hurried: None, shared: Running) -> None:
    with closing(connect(shared)) as connection:
        connection.sendall(head(shared) + BODY)
        received = connection.recv(65536)
        assert received.startswith(b"HTTP/1.1 200")
        connection.sendall(b"\r\n")
        assert b"HTTP/1.1" not in everything(connection)


def test_a_request_in_pieces_is_answered(shared: Running) -> None:
    with closing(connect(shared)) as connection:
        whole = head(shared).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + BODY
        for start in range(0, len(whole), 7):
            connection.sendall(whole[start : start + 7])
        assert everything(connection).startswith(b"HTTP/1.1 200")


def test_requests_sent_without_waiting_are_answered_in_order(shared: Running) -> None:
    with closing(connect(shared)) as connection:
        last = head(shared).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + BODY
        connection.sendall((head(shared) + BODY) * 3 + head(shared, 1) + b"{" + last)
        received = everything(connection)
    statuses = [part[:3] for part in received.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"200", b"200", b"400", b"200"]


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000_000,
        b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 200_000,
        b"GET /" + b"a" * 200_000,
    ],
    ids=["one", "many", "line"],
)
@pytest.mark.req("REQ-101")
def test_endless_headers_are_refused_while_they_come(shared: Running, sent: bytes) -> None:
    with closing(connect(shared)) as connection:
        try:
            connection.sendall(sent)
            received = everything(connection)
        except (BrokenPipeError, ConnectionResetError):  # it sent on long after it was refused
            return
    assert received.startswith(b"HTTP/1.1 431")
    assert b"application/problem+json" in received


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"NONSENSE / HTTP/1.1\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nBad Name: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_as_a_problem(shared: Running, sent: bytes) -> None:
    with closing(connect(shared)) as connection:
        connection.sendall(sent)
        received = everything(connection)
    assert received.startswith(b"HTTP/1.1 400"), received
    headers, _, body = received.partition(b"\r\n\r\n")
    assert b"application/problem+json" in headers
    request_id = json.loads(body)["request_id"].encode()
    assert b"x-request-id: " + request_id in headers


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ([b"GET / HTTP/1.1\r\n", b"X-Long: " + b"a" * 9_000, b"a" * 9_000], 431),
        ([b"GET / HTTP/1.1\r\n", b"Host: a\r\nBad Name: a\r\n\r\n"], 400),
        ([b"POST / HTTP/1.1\r\n", b"Transfer-Encoding: chunked\r\n\r\nnonsense"], 400),
        ([b"GET / HTTP/1.1\r\n", b"\r\n" + b"GET / HTTP/1.1\r\nX-Request-ID: mine\r\n\r\n" * 70], 429),
    ],
    ids=["431", "400", "body", "429"],
)
def test_a_refusal_before_the_application_has_the_request_id_that_was_sent(
    shared: Running, sent: list[bytes], status: int
) -> None:
    line, *pieces = sent
    with closing(connect(shared)) as connection:
        for piece in (line + b"X-Request-ID: mine\r\n", *pieces):
            connection.sendall(piece)
            time.sleep(0.1)
        refusal = everything(connection).rpartition(b"HTTP/1.1 ")[2]
    headers, _, body = refusal.partition(b"\r\n\r\n")
    assert (int(headers[:3]), b"\r\nx-request-id: mine" in headers, json.loads(body)["request_id"]) == (
        status, True, "mine",
    )  # fmt: skip


def test_what_follows_an_answer_and_is_no_request_gets_an_id_of_its_own(shared: Running) -> None:
    host = shared.url.removeprefix("http://")
    with closing(connect(shared)) as connection:
        connection.sendall(f"GET /health/live HTTP/1.1\r\nHost: {host}\r\nX-Request-ID: mine\r\n\r\n".encode())
        time.sleep(0.2)
        connection.sendall(b"\x16\x03\x01\r\n\r\n")
        refusal = everything(connection).rpartition(b"HTTP/1.1 400")[2]
    assert b"application/problem+json" in refusal
    assert b"mine" not in refusal


def test_a_client_that_leaves_is_recorded_all_the_same(running: Running) -> None:
    with closing(connect(running)) as connection:
        connection.sendall(head(running) + BODY)
    for _ in range(100):
        if running.records("score"):
            return
    raise AssertionError("the score was computed and is not on record")
