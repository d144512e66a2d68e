"""Cross-origin requests of browsers (CORS): none, unless the operator lists origins.

A listed origin's page may send requests and read responses. It has to send its credential itself: cookies play no part,
so `Access-Control-Allow-Credentials` is never sent, and neither is `*`.
"""

from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

NO_CONTENT = 204
PREFLIGHT_HEADERS = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, Idempotency-Key, X-Request-ID"),
    (b"access-control-max-age", b"600"),
]
EXPOSED = (b"access-control-expose-headers", b"X-Request-ID, Retry-After, RateLimit, RateLimit-Policy")
VARY = (b"vary", b"Origin")


class CrossOrigin:
    """Only added where origins are listed."""

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
