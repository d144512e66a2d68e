"""What every response wears, in one piece of middleware: a request id, security headers, a count; and the net under
defects, which answers 500 and logs where it happened, never with what."""

import re
import time

import structlog
import uuid_utils
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.formats import problem as kinds
from app.observability import describe_failure
from app.runtime.runtime import Runtime
from app.web.call import Call
from app.web.pace import HELD_BACK, hold_back
from app.web.problems import Refused, framework_problem, problem_response
from app.web.security import is_known

LARGEST_HEADERS = 16 * 1024  # bytes of address, names and values, with 4 for the separators of each
MOST_HEADERS = 100
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
NO_ROUTE = "none"  # the address is not repeated in a metric: it is the caller's text

# A page that needs more (scripts, styles) sends its own policy; all the rest loads nothing and is kept nowhere.
HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"cross-origin-resource-policy": b"same-origin",
}


class Envelope:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        given = _request_id(scope)
        scope["request_id"] = given.decode()
        is_head = scope["method"] == "HEAD"
        if is_head:  # what GET would say, its length included, without saying it
            scope = {**scope, "method": "GET"}

        async def stamped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                added = [item for item in HEADERS.items() if item[0] not in own]
                if scope["app"].runtime.is_draining:
                    added.append((b"connection", b"close"))  # the next request goes to another process
                message["headers"] = [*message["headers"], (b"x-request-id", given), *added]
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        try:
            await self._answer(scope, receive, stamped)
        except HTTPException as error:
            await _hold_back_strangers(scope, receive)
            await framework_problem(error, scope["request_id"])(scope, receive, stamped)
        except Exception as error:  # noqa: BLE001 - the last net: a defect is answered, logged, and kills nothing
            structlog.get_logger("web").error("defect", request_id=scope["request_id"], **describe_failure(error))
            if not status:
                await problem_response(Refused(kinds.DEFECT), scope["request_id"])(scope, receive, stamped)
        finally:
            _count(scope, status, time.perf_counter() - began - scope.get(HELD_BACK, 0.0))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope["headers"]
        line = len(scope["raw_path"]) + len(scope["query_string"])
        size = line + sum([len(name) + len(value) + 4 for name, value in headers])
        if size > LARGEST_HEADERS or len(headers) > MOST_HEADERS:
            await _hold_back_strangers(scope, receive)
            await problem_response(Refused(kinds.HEADERS_TOO_LARGE), scope["request_id"])(scope, receive, send)
        else:
            await self.app(scope, receive, send)


async def _hold_back_strangers(scope: Scope, receive: Receive) -> None:
    if not is_known(Call(scope, receive)):
        await hold_back(scope)


def _request_id(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return bytes(value) if REQUEST_ID.fullmatch(value) else new_request_id()
    return new_request_id()


def new_request_id() -> bytes:
    return str(uuid_utils.uuid7()).encode()


def _count(scope: Scope, status: int, seconds: float) -> None:
    runtime: Runtime = scope["app"].runtime
    route = scope.get("route")
    template = route.path if route is not None else NO_ROUTE
    runtime.metrics.requests[template, scope["method"], str(status)].inc()
    runtime.metrics.request_seconds[template,].observe(seconds)
