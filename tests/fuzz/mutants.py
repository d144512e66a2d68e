"""Services with one promise broken: what the fuzzer must notice, or it notices nothing."""

from collections.abc import Callable

import pytest
import structlog
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from app.errors import MalformedJson
from app.formats import strict_json
from app.web import door, envelope
from app.web.call import Call
from app.web.envelope import Envelope
from app.web.problems import Refused, problem_response
from app.web.protocol import GuardedProtocol

Patch = pytest.MonkeyPatch


def echo(patch: Patch) -> None:
    """As the framework's own 422 does."""
    bodies = [b""]

    def response(refusal: Refused, request_id: str) -> Response:
        refusal.detail = f"Not acceptable: {bodies[0]!r}"
        return problem_response(refusal, request_id)

    _look_at_bodies(patch, lambda body: bodies.__setitem__(0, body))
    patch.setattr(door, "problem_response", response)


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
    patch.setattr(door, "problem_response", lambda refusal, _: PlainTextResponse("no", refusal.problem.status))


def no_id(patch: Patch) -> None:
    called = Envelope.__call__

    async def call(self: Envelope, scope: Scope, receive: Receive, send: Send) -> None:
        async def stripped(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [item for item in message["headers"] if item[0] != b"x-request-id"]
            await send(message)

        await called(self, scope, receive, stripped)

    patch.setattr(Envelope, "__call__", call)


def mixed_up(patch: Patch) -> None:
    """Every answer goes to whoever asks next."""
    answered, kept = envelope._request_id, [b"nobody"]

    def request_id(scope: Scope) -> bytes:
        kept.append(answered(scope))
        return kept.pop(0)

    patch.setattr(envelope, "_request_id", request_id)


# Each with the word by which the fuzzer tells of it.
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
    read = Call.bounded_body

    async def bounded_body(self: Call, *bound: int) -> bytes:
        body = await read(self, *bound)
        look(body)
        return body

    patch.setattr(Call, "bounded_body", bounded_body)
