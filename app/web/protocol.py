"""HTTP/1.1 as uvicorn reads it, with what it leaves out: deadlines while a request arrives, and a bound on headers.

A request that came in one piece, as nearly all do, never arms a timer.
"""

import asyncio
from enum import Enum, auto

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.formats import problem as kinds
from app.formats.problem import Problem
from app.web.envelope import HEADERS, LARGEST_HEADERS, new_request_id
from app.web.problems import Refused, problem_response

HEADERS_SECONDS = 10.0  # from the first byte, or from the connection, to the end of the headers
REQUEST_SECONDS = 15.0  # to the end of the body
LINGER_SECONDS = 1.0  # what still arrives after a refusal is thrown away, so that the refusal is not lost in a reset


class Phase(Enum):
    BETWEEN = auto()  # no request has begun
    HEADERS = auto()
    BODY = auto()
    REFUSED = auto()  # the connection is about to close


class GuardedProtocol(HttpToolsProtocol):
    _phase = Phase.BETWEEN
    _deadline: asyncio.TimerHandle | None = None
    _began = 0.0  # when the request that is arriving began
    _unparsed = 0  # bytes of headers so far

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._began = self.loop.time()
        self._arm(HEADERS_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._phase is not Phase.REFUSED:
            self._unparsed += len(data)
            super().data_received(data)
            self._supervise()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase, self._began = Phase.HEADERS, self.loop.time()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._phase, self._unparsed = Phase.BODY, 0

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._phase, self._unparsed = Phase.BETWEEN, 0

    def send_400_response(self, msg: str) -> None:
        self._refuse(kinds.BAD_REQUEST)

    def _supervise(self) -> None:
        """Whoever has to send the next byte has a deadline for it, and a bound."""
        if self._phase is Phase.REFUSED:
            return
        if self._phase is Phase.HEADERS and self._unparsed > LARGEST_HEADERS:
            self._refuse(kinds.HEADERS_TOO_LARGE)
            return
        self._disarm()
        if self._phase is Phase.BODY:
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

    def _refuse(self, problem: Problem) -> None:
        """Without the application: what arrived is no request."""
        self._phase = Phase.REFUSED
        self._disarm()
        request_id = new_request_id()
        response = problem_response(Refused(problem), request_id.decode())
        self.transport.write(_raw(response, request_id))
        self._arm(LINGER_SECONDS)


def _raw(response: Response, request_id: bytes) -> bytes:
    own = [(b"x-request-id", request_id), (b"connection", b"close")]
    lines = [name + b": " + value + b"\r\n" for name, value in [*response.raw_headers, *HEADERS.items(), *own]]
    return b"".join([STATUS_LINE[response.status_code], *lines, b"\r\n", bytes(response.body)])
