"""Many new connections at once: nobody's connection waits behind those of others. Ended ones leave nothing behind."""

import asyncio
import gc
import socket
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from app.settings import Settings
from app.web.server import GuardedProtocol
from tests.web.serving import Running, serving
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


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def leave_within_the_headers(running: Running) -> None:
    with connect(running) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost")
        wait_for(lambda: bool(list(running.server.server_state.connections)))


def leave_after_the_answer(running: Running) -> None:
    assert one_by_one(running)


def leave_before_the_answers(running: Running) -> None:
    with connect(running) as connection:
        for _ in range(3):
            ask(running, connection)


@pytest.mark.parametrize("leave", [leave_within_the_headers, leave_after_the_answer, leave_before_the_answers])
def test_a_connection_that_has_ended_is_freed_without_the_garbage_collector(
    settings: Settings, models_dir: Path, leave: Callable[[Running], None]
) -> None:
    """It runs seldom: thousands of ended connections would stay in memory until then."""
    with serving(settings, models_dir) as running, no_garbage_collection():
        seen: list[weakref.ref[GuardedProtocol]] = []

        def noticed(protocol: GuardedProtocol, transport: asyncio.Transport) -> None:
            seen.append(weakref.ref(protocol))
            made(protocol, transport)

        made = GuardedProtocol.connection_made
        with patch.object(GuardedProtocol, "connection_made", noticed):
            leave(running)
            wait_for(lambda: bool(seen))
        wait_for(lambda: all(each() is None for each in seen))


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)
