"""uvicorn as this service runs it: its HTTP/1.1 protocol with deadlines and limits, and its server with a graceful
shutdown. Everything that subclasses internals of uvicorn is in this one module. Its version is pinned, and
tests/web/test_protocol.py, test_pipelining.py and test_graceful_shutdown.py notice if an update changes them.

The protocol adds what uvicorn leaves out: deadlines while a request arrives, a limit on headers, and a limit on
pipelined requests. An ASGI application cannot do this: it is called only once the headers are complete. A request that
arrives in one piece, as nearly all do, never starts a timer. Reading pauses while a request waits behind another one,
so that one connection occupies at most one read of the socket and `MAX_WAITING` requests.

The server: uvicorn closes the port as soon as it is asked to stop, which resets connections that a load balancer has
just opened, and ends with a signal's exit status. `Server` first reports not ready, keeps accepting for a while, and
exits with 0. It also accepts many connections at once where many wait.
"""

import asyncio
import ctypes
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from types import FrameType

import httptools
import uvicorn
from fastapi import FastAPI
from starlette.responses import Response
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.errors import InvalidSettings
from app.schemas import problem as problems
from app.schemas.problem import ProblemException, ProblemKind
from app.settings import Settings
from app.web.error_handlers import problem_response
from app.web.middleware import MAX_HEADER_BYTES, NO_ROUTE, SECURITY_HEADERS, new_request_id
from app.web.streaming import BODY_DEADLINE

HEADERS_SECONDS = 10.0  # from the first byte, or from the connection, to the end of the headers
REQUEST_SECONDS = 15.0  # to the end of the body, unless its route gives it another time
IDLE_SECONDS = 30.0  # of a stream: from one piece of the body to the next
READING_SECONDS = 60.0  # for a client to take what was sent (48 KiB or more) before more is sent
LINGER_SECONDS = 1.0  # from a refusal to closing the connection, so that the client can still read the refusal
MAX_WAITING = 64  # pipelined requests behind the one that is being answered
NO_METHOD = "none"  # bytes that are not a request are counted without a method

KEEP_ALIVE_SECONDS = 75  # longer than the idle timeout of common load balancers (60 s), which must close first
DRAIN_SECONDS = 2.0  # a load balancer that checks every second sees two refusals before the port closes
HANDSHAKE_SECONDS = 0.2  # for connections that are being made when the last ones are let in: a round trip
LAST_REQUESTS_SECONDS = 0.1  # for requests on the connections that were opened last to arrive
GRACE_SECONDS = 20  # for responses in flight; each has a budget of 2 s
BACKLOG = 2048

SO_ATTACH_FILTER = 26  # of Linux; Python's socket module does not name it
INSTRUCTION = struct.Struct("HBBI")  # of a packet filter (BPF): code, jump if true, jump if false, operand
IGNORE_SYN = b"".join(
    INSTRUCTION.pack(*instruction)
    for instruction in (
        (0x30, 0, 0, 13),  # load the flags of the TCP header
        (0x45, 0, 1, 0x02),  # is SYN among them?
        (0x06, 0, 0, 0),  # yes: drop the packet
        (0x06, 0, 0, 0xFFFF_FFFF),  # no: take all of it
    )
)


class Phase(Enum):
    IDLE = auto()  # no request has begun
    HEADERS = auto()
    BODY = auto()  # and trailers
    REFUSED = auto()  # nothing more is read; the connection is about to close


class TooManyWaiting(Exception):
    """Stops parsing when more pipelined requests arrived than may wait."""


class GuardedFlow(FlowControl):
    """uvicorn resumes reading after every response; this waits until the protocol can take more."""

    def __init__(self, transport: asyncio.Transport, may_read: Callable[[], bool], resumed: Callable[[], None]) -> None:
        super().__init__(transport)
        self._may_read, self._resumed = may_read, resumed

    def resume_reading(self) -> None:
        if self.read_paused and self._may_read():
            super().resume_reading()
            self._resumed()


class GuardedProtocol(HttpToolsProtocol):
    _phase = Phase.IDLE
    _deadline: asyncio.TimerHandle | None = None
    _began = 0.0  # when the request that is arriving began
    _paused_at = 0.0  # when reading was last paused
    _unparsed = 0  # bytes of headers so far, or of trailers
    # The request that is being answered, or was answered last; uvicorn's own `cycle` is the newest one.
    _answering: RequestResponseCycle | None = None
    # From the beginning of the request that is arriving to the end of its body; None: only pauses in it are limited.
    _request_seconds: float | None = REQUEST_SECONDS
    _write_deadline: asyncio.TimerHandle | None = None
    _final_response = b""  # a refusal that is sent after the responses in flight

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = GuardedFlow(transport, self._may_read, self._reading_resumed)
        self._began = self.loop.time()
        self._arm(HEADERS_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self._disarm_writing()
        if self._answering is not None:
            self._answering.disconnected = True  # otherwise its response would be a failed write
        super().connection_lost(exc)
        if self._answering is None or self._answering.response_complete:
            self._forget()

    def _forget(self) -> None:
        """What refers back to this object, and would keep it in memory until the next full garbage collection."""
        self.flow = self.scope = self.cycle = self._answering = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._phase is Phase.REFUSED:
            return
        self._unparsed += len(data)
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # no upgrade is supported: it is answered as an ordinary HTTP/1.1 request
        except httptools.HttpParserError as error:
            self._refuse_parsed(error)
        self._update_deadline()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase, self._began, self._request_seconds = Phase.HEADERS, self.loop.time(), REQUEST_SECONDS
        self.scope[BODY_DEADLINE] = self.use_deadline  # type: ignore[literal-required]

    def use_deadline(self, seconds: float | None) -> None:
        """For the request that is being answered, instead of the usual time; None: only pauses in it are limited."""
        if self._answering is self.cycle:
            self._request_seconds = seconds
            self._update_deadline()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_deadline = self.loop.call_later(READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._disarm_writing()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Also called for trailers, which are ignored: the checks of the headers are already over."""
        if self._phase is Phase.HEADERS:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MAX_WAITING:
            raise TooManyWaiting
        if b"://" in self.url and not self.url.startswith(b"/"):
            self.scope["target_authority"] = _authority(self.url)  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()
        self._phase, self._unparsed = Phase.BODY, 0

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._phase, self._unparsed = Phase.IDLE, 0

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        was_last = not self.pipeline
        super().on_response_complete()
        if was_last and self._final_response:
            self._send_final_response()

    def _may_read(self) -> bool:
        """Not while a complete request waits for its response."""
        newest = self.cycle
        return not self.pipeline and (newest is None or newest.response_complete or newest.more_body)

    def _reading_resumed(self) -> None:
        """The time during which reading was paused does not count against the sender."""
        self._began += self.loop.time() - self._paused_at
        if self._phase in (Phase.HEADERS, Phase.BODY):
            self._update_deadline()

    def _update_deadline(self) -> None:
        """Starts the deadline for the next bytes from the client, and checks the size limit."""
        if self._phase is Phase.REFUSED:
            return
        if self._phase is not Phase.IDLE and self._unparsed > MAX_HEADER_BYTES:
            self._refuse(problems.HEADERS_TOO_LARGE)
            return
        self._disarm()
        if self.flow.read_paused:
            self._paused_at = self.loop.time()
        elif self._phase is Phase.BODY:
            total = self._request_seconds
            self._arm(IDLE_SECONDS if total is None else self._began + total - self.loop.time())
        elif self._phase is Phase.HEADERS:
            self._arm(self._began + HEADERS_SECONDS - self.loop.time())
        elif self.cycle is None or self.cycle.response_complete:
            self._arm(HEADERS_SECONDS)  # empty lines between requests stop uvicorn's own timer

    def _arm(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(max(seconds, 0.0), self.transport.close)

    def _disarm_writing(self) -> None:
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse_parsed(self, error: httptools.HttpParserError) -> None:
        if isinstance(error.__context__, TooManyWaiting):
            self.pipeline.clear()  # none of them was started, so the client may send them again
            self._refuse(problems.OVER_RATE)
        else:
            self._refuse(problems.BAD_REQUEST)

    def _refuse(self, problem: ProblemKind) -> None:
        """Responds without the application, because this is not a valid request, after the responses in flight."""
        if self._phase is Phase.BODY:  # the newest request will never be complete
            self._abandon_newest()
        self._phase = Phase.REFUSED
        self._disarm()
        self._final_response = _raw_problem(problem)
        self.app.state.runtime.metrics.requests[NO_ROUTE, NO_METHOD, str(problem.status)].inc()
        if self._answering is None or self._answering.response_complete or self._answering.disconnected:
            self._send_final_response()

    def _abandon_newest(self) -> None:
        if self.cycle is self._answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        else:
            self.pipeline.popleft()

    def _send_final_response(self) -> None:
        if not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self.transport.write(self._final_response)
            self._arm(LINGER_SECONDS)


def _authority(target: bytes) -> bytes:
    """The authority of an absolute-form target, `http://authority/path`, exactly as sent."""
    rest = target.partition(b"://")[2]
    return rest.partition(b"/")[0].partition(b"?")[0]


def _raw_problem(problem: ProblemKind) -> bytes:
    request_id = new_request_id()
    response = problem_response(ProblemException(problem), request_id.decode())
    return _raw(response, request_id)


def _raw(response: Response, request_id: bytes) -> bytes:
    own = [(b"x-request-id", request_id), (b"connection", b"close")]
    lines = [name + b": " + value + b"\r\n" for name, value in [*response.raw_headers, *SECURITY_HEADERS.items(), *own]]
    return b"".join([STATUS_LINE[response.status_code], *lines, b"\r\n", bytes(response.body)])


class Server(uvicorn.Server):
    """On SIGTERM it reports not ready, keeps listening for `DRAIN_SECONDS`, then finishes the responses in flight.

    Ctrl-C skips the listening; a second Ctrl-C stops at once.
    """

    def __init__(self, config: uvicorn.Config, on_signal: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_signal = on_signal
        self._stop_at: float | None = None
        self._listening: list[socket.socket] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._listening = sockets or []
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._on_signal()
        if self._stop_at is None and sig == signal.SIGTERM:
            self._stop_at = time.monotonic() + DRAIN_SECONDS
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        await self._take_in([connection for one in self._listening for connection in _accept_all(one)])
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Closes the port only when nobody is about to come in: closing it resets every connection that was made and
        not accepted yet."""
        listening = sockets or []
        for one in listening:
            _ignore_newcomers(one)
        await asyncio.sleep(HANDSHAKE_SECONDS)
        waiting = [connection for one in listening for connection in _accept_all(one)]
        for server in self.servers:
            server.close()
        await self._take_in(waiting)
        await asyncio.sleep(LAST_REQUESTS_SECONDS)
        await super().shutdown(sockets)

    async def _take_in(self, connections: list[socket.socket]) -> None:
        """uvloop accepts one connection in each round of the event loop. Behind somebody who opens hundreds while the
        rounds are long, others would wait for seconds."""
        loop = asyncio.get_running_loop()
        taken_in = [loop.connect_accepted_socket(self._protocol, each) for each in connections]
        await asyncio.gather(*taken_in, return_exceptions=True)  # one that is broken already ends none of the others

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


def _ignore_newcomers(listening: socket.socket) -> None:
    """From now on Linux drops requests for a connection as if they had been lost on the way: the client asks again a
    second later and finds the port closed. Connections that exist or are being made, also those in the backlog, are
    not touched. Other systems, and sandboxes without such filters, reset a connection that is made between the last
    `accept` and the end of the port."""
    if sys.platform != "linux":
        return
    program = ctypes.create_string_buffer(IGNORE_SYN)
    with suppress(OSError):
        listening.setsockopt(
            socket.SOL_SOCKET,
            SO_ATTACH_FILTER,
            struct.pack("HP", len(IGNORE_SYN) // INSTRUCTION.size, ctypes.addressof(program)),
        )


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
