"""What arrives slowly, endlessly or not as HTTP at all."""

import json
import socket
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


def test_a_client_that_leaves_is_recorded_all_the_same(running: Running) -> None:
    with closing(connect(running)) as connection:
        connection.sendall(head(running) + BODY)
    for _ in range(100):
        if running.records("score"):
            return
    raise AssertionError("the score was computed and is not on record")
