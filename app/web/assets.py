"""The files that the pages consist of, read once in a process.

Own files lie in `static/`; the viewers of the OpenAPI document come with the package fastapi-offline. Every file is
compressed beforehand and has an ETag, so that a browser asks again whether its copy is current and mostly gets 304.
"""

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

from app.web.accept import accepts_gzip, elements

MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
VIEWERS = ("swagger-ui-bundle.js", "swagger-ui.css", "redoc.standalone.js")
# ReDoc would fetch its logo from another server.
REMOTE_LOGO, LOCAL_LOGO = b"https://cdn.redoc.ly/redoc/logo-mini.svg", b"assets/favicon.svg"


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    compressed: bytes
    etag: str
    media_type: str

    def response(self, request: Request, policy: str | None = None) -> Response:
        """200, or 304 if the browser has this content already. `policy` is the Content-Security-Policy of a page."""
        headers = {"ETag": self.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if policy:
            headers["Content-Security-Policy"] = policy
        if self._is_current_in(", ".join(request.headers.getlist("if-none-match"))):
            return Response(status_code=304, headers=headers)
        if not accepts_gzip(request):
            return Response(self.content, media_type=self.media_type, headers=headers)
        headers["Content-Encoding"] = "gzip"
        return Response(self.compressed, media_type=self.media_type, headers=headers)

    def _is_current_in(self, copies: str) -> bool:
        """`copies`: the value of If-None-Match, `*` or a list of ETags, of which none of ours contains a comma."""
        return any(copy.strip() in ("*", self.etag, f"W/{self.etag}") for copy in elements(copies))


def make_asset(content: bytes, suffix: str) -> Asset:
    etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    return Asset(content, gzip.compress(content, 6, mtime=0), etag, MEDIA_TYPES[suffix])


@cache
def read_assets() -> dict[str, Asset]:
    """Every file by its name, the pages included. It takes 0.1 s, so the application calls this when it starts."""
    return {file.name: _read(file) for file in _files()}


def _files() -> Iterator[Traversable]:
    viewers = files("fastapi_offline") / "static"
    yield from (viewers / name for name in VIEWERS)
    yield from (file for file in (files("app.web") / "static").iterdir() if _suffix(file) in MEDIA_TYPES)


def _read(file: Traversable) -> Asset:
    return make_asset(file.read_bytes().replace(REMOTE_LOGO, LOCAL_LOGO), _suffix(file))


def _suffix(file: Traversable) -> str:
    return file.name[file.name.rindex(".") :]
