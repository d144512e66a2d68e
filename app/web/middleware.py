"""Plain ASGI middleware: HEAD; request ids, response headers, metrics, defects, limits on headers; other origins."""

import re
import time
from collections.abc import Iterable, Sequence

import structlog
import uuid_utils
from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.observability import Metrics, describe_failure
from app.schemas import problem as problems
from app.schemas.problem import ProblemException
from app.web.error_handlers import problem_response
from app.web.security import IN_FLIGHT, RUNTIME, THROTTLED_SECONDS, throttle

MAX_HEADER_BYTES = 16 * 1024  # bytes of address, names and values, with 4 for the separators of each
MAX_HEADERS = 100
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
NO_ROUTE = "none"

# A page that needs more (scripts, styles) sends its own policy; everything else loads nothing and is not cached.
SECURITY_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"cross-origin-resource-policy": b"same-origin",
}

NO_CONTENT = 204
PREFLIGHT_HEADERS = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, Idempotency-Key, X-Request-ID"),
    (b"access-control-max-age", b"600"),
]
EXPOSED = (
    b"access-control-expose-headers",
    b"X-Request-ID, Retry-After, RateLimit, RateLimit-Policy, Idempotent-Replayed",
)
VARY = (b"vary", b"Origin")


def add_middleware(app: FastAPI, cors_origins: Sequence[str]) -> None:
    """The last one that is added is the outermost."""
    if cors_origins:
        app.add_middleware(CrossOrigin, origins=cors_origins)
    app.add_middleware(RequestContext)
    app.add_middleware(HeadRequests)


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


class RequestContext:
    """What every request gets: an id, a limit on its headers, and an answer to defects. What every response gets: that
    id, the security headers, and a count. One class, because every layer of its own costs each request time."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = request_id_of(scope["headers"])
        runtime, began, status = scope["app"].state.runtime, time.perf_counter(), 0
        scope.setdefault("state", {}).update({"request_id": request_id.decode(), RUNTIME: runtime})

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                added = [item for item in SECURITY_HEADERS.items() if item[0] not in own]
                if runtime.is_draining:
                    added.append((b"connection", b"close"))  # the next request goes to another process
                message["headers"] = [*message["headers"], (b"x-request-id", request_id), *added]
            await send(message)

        try:
            if _has_too_large_headers(scope):
                await _refuse_headers(scope, receive, send_with_headers)
            else:
                await self.app(scope, receive, send_with_headers)
        except ClientDisconnect:
            pass  # before the request was complete, so there is nothing to answer
        except Exception as error:  # noqa: BLE001 - any defect must be answered and logged, and must not end the process
            structlog.get_logger("web").error("defect", request_id=request_id.decode(), **describe_failure(error))
            if not status:
                response = problem_response(ProblemException(problems.DEFECT), request_id.decode())
                await response(scope, receive, send_with_headers)
        finally:
            if (begun := scope["state"].get(IN_FLIGHT)) is not None:
                runtime.in_flight.end(*begun)
            seconds = time.perf_counter() - began - scope.get(THROTTLED_SECONDS, 0.0)
            _count(runtime.metrics, scope, status, seconds)


async def _refuse_headers(scope: Scope, receive: Receive, send: Send) -> None:
    await throttle(scope)
    response = problem_response(ProblemException(problems.HEADERS_TOO_LARGE), scope["state"]["request_id"])
    await response(scope, receive, send)


def _count(metrics: Metrics, scope: Scope, status: int, seconds: float) -> None:
    """By the template of the route; the address itself is the caller's text."""
    route = scope.get("route")
    template = route.path if route is not None else NO_ROUTE
    metrics.requests[template, scope["method"], str(status)].inc()
    metrics.request_seconds[template,].observe(seconds)


def _has_too_large_headers(scope: Scope) -> bool:
    headers = scope["headers"]
    line = len(scope["raw_path"]) + len(scope["query_string"])
    size = line + sum([len(name) + len(value) + 4 for name, value in headers])
    return size > MAX_HEADER_BYTES or len(headers) > MAX_HEADERS


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The caller's, if it is valid, or a new one."""
    for name, value in headers:
        if name == b"x-request-id":
            return bytes(value) if REQUEST_ID.fullmatch(value) else _new_request_id()
    return _new_request_id()


def _new_request_id() -> bytes:
    return str(uuid_utils.uuid7()).encode()


class CrossOrigin:
    """Requests of pages of other origins (CORS). Only added where the operator lists origins.

    A listed origin's page may send requests and read responses. It has to send its credential itself: cookies play no
    part, so `Access-Control-Allow-Credentials` is never sent, and neither is `*`.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        self.app, self._origins = app, frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"")
        if origin not in self._origins:  # a browser then keeps the response from the page
            await self.app(scope, receive, _adding(send, [VARY]))
            return
        allowed = (b"access-control-allow-origin", origin)
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            await send(
                {"type": "http.response.start", "status": NO_CONTENT, "headers": [allowed, VARY, *PREFLIGHT_HEADERS]}
            )
            await send({"type": "http.response.body"})
            return
        await self.app(scope, receive, _adding(send, [allowed, VARY, EXPOSED]))


def _adding(send: Send, added: list[tuple[bytes, bytes]]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *added]
        await send(message)

    return send_with_headers
