"""The files that our pages are made of, and what a page may load. Every file is of this installation."""

from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.responses import HTMLResponse, Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# ReDoc writes style elements while it runs, and nothing is drawn without them.
REDOC_POLICY = POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
KINDS = {".js": "text/javascript", ".css": "text/css", ".png": "image/png"}
OURS = ("page.css", "swagger-start.js", "redoc-start.js")
THEIRS = ("swagger-ui-bundle.js", "swagger-ui.css", "redoc.standalone.js", "favicon.png")
# ReDoc would fetch its logo from a server elsewhere: no page of ours asks anybody but this service.
LOGO_ELSEWHERE, LOGO_HERE = b"https://cdn.redoc.ly/redoc/logo-mini.svg", b"assets/favicon.png"
ONE_HOUR = "public, max-age=3600"


def page_response(content: str | bytes, policy: str = POLICY) -> Response:
    return HTMLResponse(content, headers={"Content-Security-Policy": policy})


def static_page(name: str, policy: str = POLICY) -> Response:
    return page_response((files("app.web") / "static" / name).read_bytes(), policy)


def asset_response(name: str) -> Response | None:
    """None: there is no such file."""
    file = _assets().get(name)
    if file is None:
        return None
    content = file.read_bytes().replace(LOGO_ELSEWHERE, LOGO_HERE)
    return Response(content, media_type=KINDS[name[name.rindex(".") :]], headers={"Cache-Control": ONE_HOUR})


@lru_cache(maxsize=1)
def _assets() -> dict[str, Traversable]:
    own, offline = files("app.web") / "static", files("fastapi_offline") / "static"
    return {name: own / name for name in OURS} | {name: offline / name for name in THEIRS}
