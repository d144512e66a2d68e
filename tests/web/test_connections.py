"""Many new connections at once: nobody's connection waits behind those of others, and those that end leave nothing."""

import asyncio
import gc
import socket
import time
import weakref
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.settings import Settings
from app.web.server import GuardedProtocol
from tests.web.serving import Running, serving
from tests.web.test_activation import until
from tests.web.test_protocol import connect

pytestmark = pytest.mark.slow

CONNECTIONS = 400
WORK_SECONDS = 0.002  # of every round of a busy event loop
FEW_ROUNDS = 150  # three times as many as fit between two looks at the connections that wait


async def be_busy(rounds: list[float]) -> None:
    loop = asyncio.get_running_loop()

    def work() -> None:
        rounds.append(time.monotonic())
        time.sleep(WORK_SECONDS)
        if rounds[0] > 0:
            loop.call_soon(work)

    work()


def test_a_flood_of_connections_is_taken_in_few_rounds_of_a_busy_event_loop(
    settings: Settings, models_dir: Path
) -> None:
    """uvloop takes one in a round: the last ones would wait for hundreds of rounds."""
    with serving(settings, models_dir) as running, ExitStack() as stack:
        rounds: list[float] = []
        running.inside(be_busy(rounds))
        connections = [stack.enter_context(connect(running)) for _ in range(CONNECTIONS)]
        began = len(rounds)
        for connection in connections:
            ask(running, connection)
        assert all(answered(connection) for connection in connections)
        needed = len(rounds) - began
        rounds[0] = 0.0
    assert needed < FEW_ROUNDS


def ask(running: Running, connection: socket.socket) -> None:
    connection.sendall(f"GET /health/live HTTP/1.1\r\nHost: {running.url.removeprefix('http://')}\r\n\r\n".encode())


def answered(connection: socket.socket) -> bool:
    return connection.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_connections_that_come_one_after_the_other_are_served(settings: Settings, models_dir: Path) -> None:
    with serving(settings, models_dir) as running:
        assert all(one_by_one(running) for _ in range(20))


def one_by_one(running: Running) -> bool:
    with connect(running) as connection:
        ask(running, connection)
        return answered(connection)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/sites/SoV/score HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: x",
        b"no HTTP\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3,
    ],
    ids=["nothing", "half the headers", "no HTTP", "a request", "three requests at once"],
)
def test_a_connection_that_ended_leaves_memory_without_a_garbage_collection(
    sent: bytes, settings: Settings, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector runs seldom: thousands of connections that end would take tens of megabytes until then."""
    made = list[weakref.ref[GuardedProtocol]]()
    connection_made = GuardedProtocol.connection_made

    def note(self: GuardedProtocol, transport: asyncio.Transport) -> None:
        made.append(weakref.ref(self))
        connection_made(self, transport)

    monkeypatch.setattr(GuardedProtocol, "connection_made", note)
    with serving(settings, models_dir) as running:
        gc.disable()
        try:
            made.clear()
            with connect(running) as connection:
                connection.sendall(sent)
                if sent.endswith(b"\r\n\r\n"):
                    assert connection.recv(1 << 16).startswith(b"HTTP/1.1 ")
            until(lambda: len(made) == 1 and made[0]() is None)
        finally:
            gc.enable()
