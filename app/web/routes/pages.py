"""Pages for people: where to start, and the OpenAPI document in two dresses. Every file is of this installation."""

from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.responses import HTMLResponse, Response

from app.formats import problem as kinds
from app.formats.answer import encode
from app.web.call import JSON, Call
from app.web.door import Door
from app.web.openapi import document
from app.web.problems import Refused

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


async def landing(call: Call) -> Response:
    return _page("index.html")


async def swagger(call: Call) -> Response:
    return _page("docs.html")


async def redoc(call: Call) -> Response:
    return _page("redoc.html", REDOC_POLICY)


async def openapi(call: Call) -> Response:
    """Made once for each set of current models, whose answers are its examples."""
    state = call.app.state
    key = tuple(model.ref for model in call.service.shelf.current.values())
    if getattr(state, "openapi_of", None) != key:
        state.openapi, state.openapi_of = encode(document(call.app, call.service)), key
    return Response(state.openapi, media_type=JSON)


async def asset(call: Call) -> Response:
    name = call.parameter("name")
    file = _assets().get(name)
    if file is None:
        raise Refused(kinds.UNKNOWN_ROUTE)
    kind = KINDS[name[name.rindex(".") :]]
    content = file.read_bytes().replace(LOGO_ELSEWHERE, LOGO_HERE)
    return Response(content, media_type=kind, headers={"Cache-Control": ONE_HOUR})


def _page(name: str, policy: str = POLICY) -> Response:
    return HTMLResponse((files("app.web") / "static" / name).read_bytes(), headers={"Content-Security-Policy": policy})


@lru_cache(maxsize=1)
def _assets() -> dict[str, Traversable]:
    own, offline = files("app.web") / "static", files("fastapi_offline") / "static"
    return {name: own / name for name in OURS} | {name: offline / name for name in THEIRS}


DOORS = (
    Door("GET", "/", landing, "open"),
    Door("GET", "/docs", swagger, "open"),
    Door("GET", "/redoc", redoc, "open"),
    Door("GET", "/openapi.json", openapi, "open"),
    Door("GET", "/assets/{name}", asset, "open"),
)
