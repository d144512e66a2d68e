"""Services with one promise broken: what the fuzzer must notice, or it notices nothing."""

from collections.abc import Callable, Iterable

import pytest
import structlog
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from app.errors import MalformedJson
from app.formats import strict_json
from app.schemas.problem import ProblemException
from app.web import error_handlers, middleware
from app.web.error_handlers import problem_response
from app.web.middleware import RequestContext
from app.web.route import StrictRequest
from app.web.server import GuardedProtocol

Patch = pytest.MonkeyPatch


def echo(patch: Patch, only_status: int | None = None) -> None:
    """As the framework's own 422 does."""
    bodies = [b""]

    def response(error: ProblemException, request_id: str) -> Response:
        if only_status in (None, error.problem.status):
            error.detail = f"Not acceptable: {bodies[0]!r}"
        return problem_response(error, request_id)

    _look_at_bodies(patch, lambda body: bodies.__setitem__(0, body))
    patch.setattr(error_handlers, "problem_response", response)


def log(patch: Patch) -> None:
    _look_at_bodies(patch, lambda body: structlog.get_logger("web").info("body", body=repr(body)))


def crash(patch: Patch) -> None:
    """As a parser does that takes bytes for text."""
    diagnosis = strict_json._diagnosis

    def fail(body: bytes, refusal: ValueError) -> MalformedJson:
        if isinstance(refusal, UnicodeDecodeError):
            raise refusal
        return diagnosis(body, refusal)

    patch.setattr(strict_json, "_diagnosis", fail)


def reset(patch: Patch) -> None:
    """The connection ends instead of an answer."""
    complete = GuardedProtocol.on_headers_complete

    def on_headers_complete(self: GuardedProtocol) -> None:
        complete(self)
        if self.scope["method"] == "PUT":
            self.transport.abort()

    patch.setattr(GuardedProtocol, "on_headers_complete", on_headers_complete)


def plain_text(patch: Patch) -> None:
    patch.setattr(error_handlers, "problem_response", lambda error, _: PlainTextResponse("no", error.problem.status))


def no_id(patch: Patch) -> None:
    called = RequestContext.__call__

    async def call(self: RequestContext, scope: Scope, receive: Receive, send: Send) -> None:
        async def stripped(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [item for item in message["headers"] if item[0] != b"x-request-id"]
            await send(message)

        await called(self, scope, receive, stripped)

    patch.setattr(RequestContext, "__call__", call)


def mixed_up(patch: Patch) -> None:
    """Every response goes to the next caller."""
    original, delayed = middleware.request_id_of, [b"first"]

    def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        delayed.append(original(headers))
        return delayed.pop(0)

    patch.setattr(middleware, "request_id_of", request_id_of)


# Each with the word by which the fuzzer reports it.
MUTANTS: dict[Callable[[Patch], None], str] = {
    echo: "echo",
    log: "logged",
    crash: "server error",
    reset: "no answer",
    plain_text: "not a problem",
    no_id: "no request id",
    mixed_up: "another's answer",
}


def _look_at_bodies(patch: Patch, look: Callable[[bytes], None]) -> None:
    read = StrictRequest.body

    async def read_and_look(self: StrictRequest) -> bytes:
        body = await read(self)
        look(body)
        return body

    patch.setattr(StrictRequest, "body", read_and_look)
