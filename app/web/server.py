"""uvicorn as this service runs it: one process, httptools, deadlines, and a graceful shutdown.

uvicorn closes the port as soon as it is asked to stop, which resets connections that a load balancer has just opened,
and ends with a signal's exit status. `Server` first reports not ready, keeps accepting for a while, and exits with 0.
"""

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

KEEP_ALIVE_SECONDS = 75  # longer than the idle timeout of common load balancers (60 s), which must close first
DRAIN_SECONDS = 2.0  # a load balancer that checks every second sees two refusals before the port closes
LAST_REQUESTS_SECONDS = 0.1  # for requests on the connections that were opened last to arrive
GRACE_SECONDS = 20  # for responses in flight; each has a budget of 2 s
BACKLOG = 2048


class Server(uvicorn.Server):
    """On SIGTERM it reports not ready, keeps listening for `DRAIN_SECONDS`, then finishes the responses in flight.

    Ctrl-C skips the listening; a second Ctrl-C stops at once.
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
        """Accepts the connections that wait in the backlog first: closing the port would reset them."""
        waiting = [connection for listening in sockets or [] for connection in _accept_all(listening)]
        for server in self.servers:
            server.close()
        for connection in waiting:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        await asyncio.sleep(LAST_REQUESTS_SECONDS)
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        return GuardedProtocol(self.config, self.server_state, {})

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, but does not raise the signal again at the end: a clean stop exits with 0."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread receives signals
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
        except OSError:  # the backlog is empty
            return


def make_server(app: FastAPI, settings: Settings) -> Server:
    """For an application whose lifespan the caller has already entered."""
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
    """The listening socket. A port that is taken is reported in one sentence."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or "unknown host"
        raise InvalidSettings([f"NORMALCY_HOST and NORMALCY_PORT cannot be listened on: {reason}."]) from error
