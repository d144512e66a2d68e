"""Bodies, read whole up to a limit or as a stream, and responses that leave while the request arrives.

A stream has idle deadlines only. The client sets the pace: while it does not read, nothing more is read from it. A
credential is checked again while a body arrives that may take long.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any

import structlog
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.errors import NormalcyError
from app.observability import describe_failure
from app.schemas import problem as problems
from app.schemas.problem import ProblemException, ProblemKind, problem_body
from app.web.error_handlers import problem_exception
from app.web.security import refuse_ended_credential

Json = dict[str, Any]

BODY_DEADLINE = "body_deadline"  # in the scope: a function of the protocol, see `app.web.server`


def use_idle_deadline(request: Request) -> None:
    """From now on the body may take any time, as long as it keeps arriving."""
    _set_deadline(request, None)


def use_deadline(request: Request, seconds: float) -> None:
    """The whole request may take so long to arrive."""
    _set_deadline(request, seconds)


def _set_deadline(request: Request, seconds: float | None) -> None:
    request.scope.get(BODY_DEADLINE, lambda seconds: None)(seconds)


async def chunks(request: Request) -> AsyncIterator[bytes]:
    """The body as it arrives. Raises ClientDisconnect."""
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        if body := message.get("body", b""):
            yield body
        more = message.get("more_body", False)


async def chunks_while_admitted(request: Request) -> AsyncIterator[bytes]:
    """As `chunks`; raises ProblemException as soon as the caller's credential is no longer valid."""
    async for chunk in chunks(request):
        await refuse_ended_credential(request)
        yield chunk
    await refuse_ended_credential(request)  # the end may come long after the last chunk


async def whole_body(
    request: Request,
    largest: int,
    too_large: ProblemKind,
    read: Callable[[Request], AsyncIterator[bytes]] = chunks,
) -> bytes:
    """Counted while it arrives, so that nothing larger is ever held in memory. Raises ClientDisconnect."""
    announced = dict(request.scope["headers"]).get(b"content-length", b"")
    if announced.isdigit() and int(announced) > largest:
        raise ProblemException(too_large)
    body = bytearray()
    async for chunk in read(request):
        body += chunk
        if len(body) > largest:
            raise ProblemException(too_large)
    return bytes(body)


class StreamedResponse(Response):
    """Sends parts as they are made. A failure after the first one ends the stream with a line that describes it."""

    def __init__(
        self, first: bytes, rest: AsyncIterator[bytes], media_type: str, problem_line: Callable[[Json], bytes]
    ) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._first, self._rest, self._problem_line = first, rest, problem_line

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self._first, "more_body": True})
        try:
            async for part in self._rest:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        except ClientDisconnect:
            raise  # nobody is there to read a problem
        except Exception as error:  # noqa: BLE001 - whatever fails, the reader must see that the stream is not complete
            last = self._problem_line(_problem(scope, error))
            await send({"type": "http.response.body", "body": last, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _problem(scope: Scope, error: Exception) -> Json:
    request_id: str = scope["state"]["request_id"]
    found = _problem_exception(error)
    event = "defect" if found.problem is problems.DEFECT else "stream ended"
    log = structlog.get_logger("web")
    log.error(event, request_id=request_id, route=scope["route"].path, **describe_failure(error))
    return problem_body(found.problem, request_id, found.errors, found.detail)


def _problem_exception(error: Exception) -> ProblemException:
    match error:
        case ProblemException():
            return error
        case NormalcyError():
            return problem_exception(error)
    return ProblemException(problems.DEFECT)
