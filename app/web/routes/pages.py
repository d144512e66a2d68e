"""Pages for people: the first page, the guide, model cards, and the OpenAPI document in two viewers.

Every file comes from this installation; no page loads anything from elsewhere.
"""

from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Depends, Request, Security
from starlette.responses import HTMLResponse, Response

from app.domain.scopes import Scope
from app.formats.card_markdown import card_markdown
from app.formats.response import encode
from app.schemas import problem as problems
from app.training.gates import calibration_gates
from app.web import markdown_page
from app.web.guide import guide as guide_text
from app.web.openapi import document
from app.web.problems import ProblemException
from app.web.route import JSON, ApiRoute, api_routes
from app.web.security import RuntimeDep, allow_anonymous, authorize

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# ReDoc creates style elements while it runs and draws nothing without them.
REDOC_POLICY = POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".png": "image/png"}
OWN_ASSETS = ("page.css", "swagger-start.js", "redoc-start.js")
OFFLINE_ASSETS = ("swagger-ui-bundle.js", "swagger-ui.css", "redoc.standalone.js", "favicon.png")
# ReDoc would fetch its logo from another server.
REMOTE_LOGO, LOCAL_LOGO = b"https://cdn.redoc.ly/redoc/logo-mini.svg", b"assets/favicon.png"
ONE_HOUR = "public, max-age=3600"
TWO_UP = "../../"  # from a card to the first page
OPEN = [Depends(allow_anonymous)]

router = APIRouter(route_class=ApiRoute, include_in_schema=False)


@router.get("/", summary="The first page", dependencies=OPEN)
async def first_page() -> Response:
    return _static_page("index.html")


@router.get("/guide", summary="This guide", dependencies=OPEN)
async def guide(request: Request) -> Response:
    state = request.app.state
    if not hasattr(state, "guide"):
        state.guide = markdown_page.render(guide_text(api_routes(request.app)), "Normalcy: the guide")
    return _page(state.guide)


@router.get(
    "/models/{site}/{version}",
    summary="The card of a model, as a page",
    dependencies=[Security(authorize, scopes=[Scope.MODEL_READ])],
)
async def model_card(runtime: RuntimeDep, site: str, version: str) -> Response:
    model = await runtime.loaded_models.find(site, version)
    ref = model.ref
    as_json = f"[The same as JSON]({TWO_UP}v1/models/{ref.site}/{ref.version})"
    card = card_markdown(model.card, calibration_gates(model.card.calibration))
    text = f"{card}\n## Digest\n\nSHA-256 of this version: `{ref.sha256}`\n\n{as_json}\n"
    return _page(markdown_page.render(text, f"Normalcy: {ref.site} {ref.version}", TWO_UP))


@router.get("/docs", summary="Every operation, to try out (Swagger UI)", dependencies=OPEN)
async def swagger_ui() -> Response:
    return _static_page("docs.html")


@router.get("/redoc", summary="Every operation, to read (ReDoc)", dependencies=OPEN)
async def redoc() -> Response:
    return _static_page("redoc.html", REDOC_POLICY)


@router.get("/openapi.json", summary="The OpenAPI document", dependencies=OPEN)
async def openapi(request: Request, runtime: RuntimeDep) -> Response:
    # Built once for each set of current models, because their responses are its examples.
    state = request.app.state
    key = tuple(model.ref for model in runtime.loaded_models.current.values())
    if getattr(state, "openapi_of", None) != key:
        state.openapi, state.openapi_of = encode(document(request.app, runtime)), key
    return Response(state.openapi, media_type=JSON)


@router.get("/assets/{name}", summary="Scripts, styles and the icon of the pages", dependencies=OPEN)
async def asset(name: str) -> Response:
    file = _assets().get(name)
    if file is None:
        raise ProblemException(problems.UNKNOWN_ROUTE)
    content = file.read_bytes().replace(REMOTE_LOGO, LOCAL_LOGO)
    return Response(content, media_type=MEDIA_TYPES[name[name.rindex(".") :]], headers={"Cache-Control": ONE_HOUR})


def _page(content: str | bytes, policy: str = POLICY) -> Response:
    return HTMLResponse(content, headers={"Content-Security-Policy": policy})


def _static_page(name: str, policy: str = POLICY) -> Response:
    return _page((files("app.web") / "static" / name).read_bytes(), policy)


@lru_cache(maxsize=1)
def _assets() -> dict[str, Traversable]:
    own, offline = files("app.web") / "static", files("fastapi_offline") / "static"
    return {name: own / name for name in OWN_ASSETS} | {name: offline / name for name in OFFLINE_ASSETS}
