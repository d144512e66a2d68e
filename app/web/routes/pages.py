"""Pages for people: where to start, the guide, the cards, and the OpenAPI document in two dresses."""

from starlette.responses import Response

from app.formats import problem as kinds
from app.formats.answer import encode
from app.formats.card_markdown import card_markdown
from app.training.gates import calibration_gates
from app.web import reading
from app.web.assets import REDOC_POLICY, asset_response, page_response, static_page
from app.web.call import JSON, Call
from app.web.door import Door
from app.web.guide.assemble import guide as guide_text
from app.web.openapi import document
from app.web.problems import Refused

TWO_UP = "../../"  # from a card to the first page


async def landing(call: Call) -> Response:
    """The first page."""
    return static_page("index.html")


async def guide(call: Call) -> Response:
    """This guide."""
    state = call.app.state
    if not hasattr(state, "guide"):
        doors = [route.door for route in call.app.routes]
        state.guide = reading.page(guide_text(doors), "Normalcy: the guide")
    return page_response(state.guide)


async def card(call: Call) -> Response:
    """The card of a model, for people."""
    model = await call.runtime.loaded_models.find(call.parameter("site"), call.parameter("version"))
    site, version = model.ref.site, model.ref.version
    as_json = f"[The same as JSON]({TWO_UP}v1/models/{site}/{version})"
    card = card_markdown(model.card, calibration_gates(model.card.calibration))
    text = f"{card}\n## Digest\n\nSHA-256 of this version: `{model.ref.sha256}`\n\n{as_json}\n"
    return page_response(reading.page(text, f"Normalcy: {site} {version}", TWO_UP))


async def swagger(call: Call) -> Response:
    """Every call, to be tried out (Swagger UI)."""
    return static_page("docs.html")


async def redoc(call: Call) -> Response:
    """Every call, to be read (ReDoc)."""
    return static_page("redoc.html", REDOC_POLICY)


async def openapi(call: Call) -> Response:
    """The OpenAPI document."""
    # Made once for each set of current models, whose answers are its examples.
    state = call.app.state
    key = tuple(model.ref for model in call.runtime.loaded_models.current.values())
    if getattr(state, "openapi_of", None) != key:
        state.openapi, state.openapi_of = encode(document(call.app, call.runtime)), key
    return Response(state.openapi, media_type=JSON)


async def asset(call: Call) -> Response:
    """Scripts, styles and the icon of the pages."""
    response = asset_response(call.parameter("name"))
    if response is None:
        raise Refused(kinds.UNKNOWN_ROUTE)
    return response


DOORS = (
    Door("GET", "/", landing, "open"),
    Door("GET", "/guide", guide, "open"),
    Door("GET", "/models/{site}/{version}", card, "model:read"),
    Door("GET", "/docs", swagger, "open"),
    Door("GET", "/redoc", redoc, "open"),
    Door("GET", "/openapi.json", openapi, "open"),
    Door("GET", "/assets/{name}", asset, "open"),
)
