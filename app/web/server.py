"""uvicorn as this service runs it: one process, httptools, deadlines, and a gentle end."""

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.errors import InvalidSettings
from app.settings import Settings
from app.web.protocol import GuardedProtocol

KEEP_ALIVE_SECONDS = 75  # longer than the idle time of common balancers (60 s), or they send into a closing connection
DRAIN_SECONDS = 2.0  # a balancer that asks every second has seen two refusals before the port closes
LAST_LOOK_SECONDS = 0.1  # for the requests of those who connected last to arrive, whether taken in already or not
GRACE_SECONDS = 20  # for answers under way; each has a budget of 2 s
BACKLOG = 2048


class Server(uvicorn.Server):
    """Told to stop, it is not ready any more but still listens for a while; then answers under way are finished.

    Ctrl-C leaves the while out; a second signal does not wait for anybody.
    """

    def __init__(self, config: uvicorn.Config, on_signal: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_signal = on_signal
        self._stop_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._on_signal()
        if self._stop_at is None and sig == signal.SIGTERM:
            self._stop_at = time.monotonic() + DRAIN_SECONDS
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Whoever has connected is still answered: closing the port would reset those that were not yet taken in."""
        waiting = [connection for listening in sockets or [] for connection in _accept_all(listening)]
        for server in self.servers:
            server.close()
        for connection in waiting:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        await asyncio.sleep(LAST_LOOK_SECONDS)
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        return GuardedProtocol(self.config, self.server_state, {})

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn, but a stop that was asked for and went well is no death by signal: the exit status is 0."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread hears signals
            return
        before = {sig: signal.signal(sig, self.handle_exit) for sig in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)


def _accept_all(listening: socket.socket) -> Iterator[socket.socket]:
    listening.setblocking(False)
    while True:
        try:
            yield listening.accept()[0]
        except OSError:  # nobody waits
            return


def make_server(app: FastAPI, settings: Settings) -> Server:
    """For an application whose lifespan the caller has entered."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )

    def drain() -> None:
        app.state.runtime.is_draining = True

    return Server(config, drain)


def bind(settings: Settings) -> socket.socket:
    """Where to listen. A port that is taken is told in one sentence."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or "unknown host"
        raise InvalidSettings([f"NORMALCY_HOST and NORMALCY_PORT name no place to listen: {reason}."]) from error
