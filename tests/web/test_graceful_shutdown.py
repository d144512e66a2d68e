"""While the service stops, it still answers the callers that are connected, even if their request arrives late."""

import json
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.settings import Settings
from app.web import server
from tests.web.serving import READING, SCORE, serving

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 20.0


def is_closed(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=0.2).close()
    except ConnectionRefusedError:
        return True
    except TimeoutError:  # about to close: connections are no longer made
        return False
    return False


def request(host: str) -> bytes:
    body = json.dumps(READING).encode()
    head = f"POST {SCORE} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def test_a_request_after_the_port_has_closed_is_answered_if_its_connection_was_there(
    settings: Settings, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LAST_REQUESTS_SECONDS", 5.0)  # so long that a slow machine is no reason to fail
    with serving(settings, models_dir) as running:
        place = urlsplit(running.url)
        address = (str(place.hostname), int(place.port or 0))
        with socket.create_connection(address, timeout=PATIENCE_SECONDS) as connection:
            assert running.score().status_code == 200  # by then the connection above was taken in
            running.server.should_exit = True
            until = time.monotonic() + PATIENCE_SECONDS
            while not is_closed(address) and time.monotonic() < until:
                time.sleep(0.01)
            connection.sendall(request(place.netloc))
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no filter for a listening socket")
def test_nobody_connects_between_the_last_accept_and_the_end_of_the_port(
    settings: Settings, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a connection would be reset, and its request lost without an answer."""
    accept_all, last = server._accept_all, dict[object, object]()  # by port: other services may run beside this one

    def accept_all_and_then_somebody_comes(listening: socket.socket) -> Iterator[socket.socket]:
        yield from accept_all(listening)
        with socket.socket() as late:
            late.setblocking(False)
            address = listening.getsockname()
            late.connect_ex(address)
            time.sleep(0.1)  # many times what a connection on one machine takes
            try:
                last[address[1]] = late.getpeername()
            except OSError:
                last[address[1]] = None  # not connected

    monkeypatch.setattr(server, "_accept_all", accept_all_and_then_somebody_comes)
    with serving(settings, models_dir) as running:
        assert running.score().status_code == 200
        assert last[urlsplit(running.url).port] is not None  # whoever comes before is taken in by the next round
    assert last[urlsplit(running.url).port] is None
