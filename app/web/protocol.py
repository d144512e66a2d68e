"""HTTP/1.1 as uvicorn reads it, with what it leaves out: deadlines while a request arrives, a bound on headers, and a
bound on requests that are sent without waiting for answers.

A request that came in one piece, as nearly all do, never arms a timer. Reading stops while a request waits behind
another one, so that a caller makes this process hold one read of the socket and `MOST_WAITING` requests at most.
"""

import asyncio
from collections.abc import Callable
from enum import Enum, auto

import httptools
from starlette.responses import Response
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.schemas import problem as problems
from app.schemas.problem import ProblemKind
from app.web.middleware import LARGEST_HEADERS, NO_ROUTE, SECURITY_HEADERS, new_request_id
from app.web.problems import ProblemException, problem_response

HEADERS_SECONDS = 10.0  # from the first byte, or from the connection, to the end of the headers
REQUEST_SECONDS = 15.0  # to the end of the body
LINGER_SECONDS = 1.0  # from a refusal to the end of the connection, so that the refusal is not lost in a reset
MOST_WAITING = 64  # requests behind the one that is being answered
NO_METHOD = "none"  # what is no request is counted without one


class Phase(Enum):
    BETWEEN = auto()  # no request has begun
    HEADERS = auto()
    BODY = auto()  # and trailers
    REFUSED = auto()  # nothing more is read; the connection is about to close


class TooManyWaiting(Exception):
    """Ends the parsing of a read in which more requests came than may wait."""


class GuardedFlow(FlowControl):
    """uvicorn resumes reading after every answer; here it waits until the protocol can take more."""

    def __init__(self, transport: asyncio.Transport, may_read: Callable[[], bool], resumed: Callable[[], None]) -> None:
        super().__init__(transport)
        self._may_read, self._resumed = may_read, resumed

    def resume_reading(self) -> None:
        if self.read_paused and self._may_read():
            super().resume_reading()
            self._resumed()


class GuardedProtocol(HttpToolsProtocol):
    _phase = Phase.BETWEEN
    _deadline: asyncio.TimerHandle | None = None
    _began = 0.0  # when the request that is arriving began
    _deaf_since = 0.0  # when reading was last paused
    _unparsed = 0  # bytes of headers so far, or of trailers
    _answering: RequestResponseCycle | None = (
        None  # the request that is answered, or was last; uvicorn keeps the newest
    )
    _last_words = b""  # a refusal that leaves after the answers under way

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = GuardedFlow(transport, self._may_read, self._reading_resumed)
        self._began = self.loop.time()
        self._arm(HEADERS_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        if self._answering is not None:
            self._answering.disconnected = True  # or its answer is a failed write
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._phase is Phase.REFUSED:
            return
        self._unparsed += len(data)
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # there is nothing to upgrade to: it is answered as the HTTP/1.1 request that it is
        except httptools.HttpParserError as error:
            self._refuse_what_came(error)
        self._supervise()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase, self._began = Phase.HEADERS, self.loop.time()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers come here too, behind the body. They are ignored: nothing checked them when the request began."""
        if self._phase is Phase.HEADERS:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MOST_WAITING:
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
        self._phase, self._unparsed = Phase.BETWEEN, 0

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        was_last = not self.pipeline
        super().on_response_complete()
        if was_last and self._last_words:
            self._part()

    def _may_read(self) -> bool:
        """Not while a request that has arrived waits for its answer."""
        newest = self.cycle
        return not self.pipeline and (newest is None or newest.response_complete or newest.more_body)

    def _reading_resumed(self) -> None:
        """While nobody listened the sender's time stood still."""
        self._began += self.loop.time() - self._deaf_since
        if self._phase in (Phase.HEADERS, Phase.BODY):
            self._supervise()

    def _supervise(self) -> None:
        """Whoever has to send the next byte has a deadline for it, and a bound."""
        if self._phase is Phase.REFUSED:
            return
        if self._phase is not Phase.BETWEEN and self._unparsed > LARGEST_HEADERS:
            self._refuse(problems.HEADERS_TOO_LARGE)
            return
        self._disarm()
        if self.flow.read_paused:
            self._deaf_since = self.loop.time()
        elif self._phase is Phase.BODY:
            self._arm(self._began + REQUEST_SECONDS - self.loop.time())
        elif self._phase is Phase.HEADERS:
            self._arm(self._began + HEADERS_SECONDS - self.loop.time())
        elif self.cycle is None or self.cycle.response_complete:
            self._arm(HEADERS_SECONDS)  # empty lines between requests: they end uvicorn's own timer

    def _arm(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(max(seconds, 0.0), self.transport.close)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse_what_came(self, error: httptools.HttpParserError) -> None:
        if isinstance(error.__context__, TooManyWaiting):
            self.pipeline.clear()  # none of them was begun, and the client may send them again
            self._refuse(problems.OVER_RATE)
        else:
            self._refuse(problems.BAD_REQUEST)

    def _refuse(self, problem: ProblemKind) -> None:
        """Without the application: what arrived is no request. It waits for the answers to those that came before."""
        if self._phase is Phase.BODY:  # the newest request will never be complete
            self._abandon_newest()
        self._phase = Phase.REFUSED
        self._disarm()
        self._last_words = _raw_problem(problem)
        self.app.state.runtime.metrics.requests[NO_ROUTE, NO_METHOD, str(problem.status)].inc()
        if self._answering is None or self._answering.response_complete or self._answering.disconnected:
            self._part()

    def _abandon_newest(self) -> None:
        if self.cycle is self._answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        else:
            self.pipeline.popleft()

    def _part(self) -> None:
        if not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self.transport.write(self._last_words)
            self._arm(LINGER_SECONDS)


def _authority(target: bytes) -> bytes:
    """Of an absolute-form target, `http://authority/path`, as it is written."""
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
