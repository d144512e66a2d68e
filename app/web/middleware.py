"""Plain ASGI middleware, outermost first: response headers, HEAD, metrics, unexpected errors, limits on headers."""

import re
import time
from collections.abc import Callable

import structlog
import uuid_utils
from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.observability import describe_failure
from app.schemas import problem as problems
from app.web.error_handlers import THROTTLED_SECONDS, throttle_anonymous
from app.web.problems import ProblemException, problem_response
from app.web.security import runtime_of

LARGEST_HEADERS = 16 * 1024  # bytes of address, names and values, with 4 for the separators of each
MOST_HEADERS = 100
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
NO_ROUTE = "none"  # metrics never repeat the address: it is the caller's text

# A page that needs more (scripts, styles) sends its own policy; everything else loads nothing and is not cached.
SECURITY_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"cross-origin-resource-policy": b"same-origin",
}


def add_middleware(app: FastAPI) -> None:
    """The last one that is added is the outermost."""
    middleware: tuple[Callable[[ASGIApp], ASGIApp], ...] = (
        HeaderLimits,
        UnexpectedErrors,
        RequestMetrics,
        HeadRequests,
        ResponseHeaders,
    )
    for one in middleware:
        app.add_middleware(one)


class ResponseHeaders:
    """Gives every request an id, and every response that id and the security headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id.decode()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                added = [item for item in SECURITY_HEADERS.items() if item[0] not in own]
                if runtime_of(scope).is_draining:
                    added.append((b"connection", b"close"))  # the next request goes to another process
                message["headers"] = [*message["headers"], (b"x-request-id", request_id), *added]
            await send(message)

        await self.app(scope, receive, send_with_headers)


class HeadRequests:
    """Answers HEAD as GET, with the same headers and without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.app({**scope, "method": "GET"}, receive, send_without_body)


class RequestMetrics:
    """Counts and times every request by the template of its route."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_note_status)
        finally:
            metrics, route = runtime_of(scope).metrics, scope.get("route")
            template = route.path if route is not None else NO_ROUTE
            metrics.requests[template, scope["method"], str(status)].inc()
            metrics.request_seconds[template,].observe(time.perf_counter() - began - scope.get(THROTTLED_SECONDS, 0.0))


class UnexpectedErrors:
    """Answers a defect with 500 and logs where it happened, never with which values."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_started = False

        async def send_and_note_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self.app(scope, receive, send_and_note_start)
        except ClientDisconnect:
            pass  # before the request was complete, so there is nothing to answer
        except Exception as error:  # noqa: BLE001 - any defect must be answered and logged, and must not end the process
            request_id = scope["state"]["request_id"]
            structlog.get_logger("web").error("defect", request_id=request_id, **describe_failure(error))
            if not has_started:
                await problem_response(ProblemException(problems.DEFECT), request_id)(scope, receive, send)


class HeaderLimits:
    """Refuses headers that are too large or too many."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_too_large_headers(scope):
            await self.app(scope, receive, send)
            return
        await throttle_anonymous(scope)
        response = problem_response(ProblemException(problems.HEADERS_TOO_LARGE), scope["state"]["request_id"])
        await response(scope, receive, send)


def _has_too_large_headers(scope: Scope) -> bool:
    headers = scope["headers"]
    line = len(scope["raw_path"]) + len(scope["query_string"])
    size = line + sum([len(name) + len(value) + 4 for name, value in headers])
    return size > LARGEST_HEADERS or len(headers) > MOST_HEADERS


def _request_id(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return bytes(value) if REQUEST_ID.fullmatch(value) else new_request_id()
    return new_request_id()


def new_request_id() -> bytes:
    return str(uuid_utils.uuid7()).encode()
