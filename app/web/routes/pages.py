"""Pages for people: the calculator, the guide, model cards, and the OpenAPI document in two viewers.

Every file comes from this installation; no page loads anything from elsewhere. The pages are open to everyone and hold
no data: where keys are required, their scripts ask for one and send it with each request for data.
"""

from functools import cache

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, Response

from app.charts.axes import ChartStyle
from app.formats.response import encode
from app.inference.executor import LoadedModel
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas import problem as problems
from app.schemas.problem import ProblemException
from app.services.describe_card import describe_card
from app.web import markdown_page
from app.web.assets import Asset, make_asset, read_assets
from app.web.guide import INDEX, guide_page, guide_picture
from app.web.openapi import document
from app.web.route import JSON, ApiRoute
from app.web.routes.charts import ModelReader, Width
from app.web.security import RuntimeDep, allow_anonymous

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# ReDoc creates style elements while it runs and draws nothing without them.
REDOC_POLICY = POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
HTML = ".html"
CARD_TO_ROOT = "../../"  # from the page of a card
# Tells the script of a page to ask for a key before its first request, which would leave a refusal in the audit.
NO_KEY, KEY = b'data-key="none"', b'data-key="required"'
OPEN = [Depends(allow_anonymous)]

router = APIRouter(route_class=ApiRoute, include_in_schema=False)


@router.get("/", summary="The calculator", dependencies=OPEN)
async def calculator(request: Request, runtime: RuntimeDep) -> Response:
    return _page(request, "index.html", key_required=runtime.authenticator.is_required)


@router.get("/guide", summary="The guide: its first page, and the kinds of problems", dependencies=OPEN)
async def guide(request: Request) -> Response:
    return _with_policy(_found(guide_page(INDEX)), request)


@router.get("/guide/{page}", summary="A page of the guide", dependencies=OPEN)
async def page_of_guide(request: Request, page: str) -> Response:
    found = None if page == INDEX else guide_page(page)  # one address for each page: its links are relative
    return _with_policy(_found(found), request)


@router.get("/guide/pictures/{picture}", summary="A picture of the guide", dependencies=OPEN)
async def picture_of_guide(request: Request, picture: str) -> Response:
    return _found(guide_picture(picture)).response(request)


@router.get("/models/{site}/{version}", summary="The card of a model, as a page", dependencies=OPEN)
async def model_card(request: Request, runtime: RuntimeDep, site: str, version: str) -> Response:
    """The same page for every card; its script fetches the content.

    That a version exists is no secret: `/openapi.json` and every score name the current ones. So the address of a
    version that does not exist answers 404 without a credential. What a card says needs the scope.
    """
    if not await runtime.loaded_models.is_published(site, version):
        raise ProblemException(problems.UNKNOWN_ROUTE)
    return _page(request, "card.html", key_required=runtime.authenticator.is_required)


@router.get("/models/{site}/{version}/content", summary="The content of that page")
async def model_card_content(
    runtime: RuntimeDep, caller: ModelReader, site: str, version: str, width: Width = 640
) -> Response:
    model = await runtime.loaded_models.find(site, version)
    page = await _card_page(runtime, caller, model, width)
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})


@router.get("/docs", summary="Every operation, to try out (Swagger UI)", dependencies=OPEN)
async def swagger_ui(request: Request) -> Response:
    return _page(request, "docs.html")


@router.get("/redoc", summary="Every operation, to read (ReDoc)", dependencies=OPEN)
async def redoc(request: Request) -> Response:
    return read_assets()["redoc.html"].response(request, REDOC_POLICY)


@router.get("/openapi.json", summary="The OpenAPI document", dependencies=OPEN)
async def openapi(request: Request, runtime: RuntimeDep) -> Response:
    # Built once for each set of current models, because their responses are its examples.
    state = request.app.state
    key = tuple(model.ref for model in runtime.loaded_models.current.values())
    if getattr(state, "openapi_of", None) != key:
        state.openapi, state.openapi_of = encode(document(request.app, runtime)), key
    return Response(state.openapi, media_type=JSON)


@router.get("/assets/{name}", summary="Scripts, styles and the icon of the pages", dependencies=OPEN)
async def asset(request: Request, name: str) -> Response:
    return _found(None if name.endswith(HTML) else read_assets().get(name)).response(request)


async def _card_page(runtime: Runtime, caller: Caller, model: LoadedModel, width: int) -> str:
    """`width`: that of the pictures, in CSS pixels."""
    ref, card = model.ref, await describe_card(runtime, caller, model, ChartStyle(width))
    as_json = f"[The same as JSON]({CARD_TO_ROOT}v1/models/{ref.site}/{ref.version})"
    text = f"{card.markdown}\n## Digest\n\nSHA-256 of this version: `{ref.sha256}`\n\n{as_json}\n"
    return markdown_page.render(text, f"Normalcy: {ref.site} {ref.version}", CARD_TO_ROOT, pictures=card.pictures)


def _page(request: Request, name: str, *, key_required: bool = False) -> Response:
    page = read_assets()[name]
    return _with_policy(_asking_for_key(page) if key_required else page, request)


def _found(asset: Asset | None) -> Asset:
    if asset is None:
        raise ProblemException(problems.UNKNOWN_ROUTE)
    return asset


def _with_policy(page: Asset, request: Request) -> Response:
    return page.response(request, POLICY)


@cache
def _asking_for_key(page: Asset) -> Asset:
    return make_asset(page.content.replace(NO_KEY, KEY), HTML)
