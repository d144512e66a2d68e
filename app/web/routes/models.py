"""Models: what is published, what each version is, which was current when, and which is to be."""

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from app.formats import problem as kinds
from app.schemas.errors import parse
from app.schemas.lookups import Activated, Card, History, Models
from app.schemas.requests import ActivateRequest
from app.services import describe_models
from app.services.activate_model import activate_model
from app.web.call import Call
from app.web.door import Door
from app.web.openapi import LOCKED, READS_JSON, RECORDED, responses
from app.web.routes.scores import SitePath

VersionPath = Annotated[str, Path(description="An exact version.", openapi_examples={"1.0.0": {"value": "1.0.0"}})]


async def list_models(call: Call) -> Response:
    """Every published version, with its digest."""
    return call.answer(await describe_models.list_models(call.runtime))


async def show_card(call: Call) -> Response:
    """The model card: cohort, ranges, kernel, training record, calibration, convention, limits of reliability."""
    return call.answer(
        await describe_models.model_card(call.runtime, call.parameter("site"), call.parameter("version"))
    )


async def show_history(call: Call) -> Response:
    """Which version was current from when to when, and who changed it."""
    return call.answer(await describe_models.activation_history(call.runtime, call.parameter("site")))


async def activate_version(call: Call) -> Response:
    """Load a version beside the current one, verify its digest, run its golden cases, and swap. Every process follows
    within two seconds. On failure the version before it keeps serving."""
    version = parse(ActivateRequest, await call.document()).version
    return call.answer(await activate_model(call.runtime, call.caller(), call.parameter("site"), version))


def _site(site: SitePath) -> None: ...


def _version(site: SitePath, version: VersionPath) -> None: ...


def _activation(site: SitePath, body: ActivateRequest) -> None: ...


def _shown(tag: str, summary: str, model: type, *refusals: kinds.Problem) -> dict[str, object]:
    return {"include_in_schema": True, "tags": [tag], "summary": summary, "responses": responses(model, *refusals)}


UNKNOWN = (kinds.UNKNOWN_SITE, kinds.UNKNOWN_VERSION)

# The last one matches what the others mean: `history` and `activate` are no versions.
DOORS = (
    Door(
        "GET", "/v1/models", list_models, "model:read", openapi=_shown("Look-ups", "Published models", Models, *LOCKED)
    ),
    Door(
        "GET",
        "/v1/models/{site}/history",
        show_history,
        "model:read",
        _site,
        _shown("Look-ups", "Activations of a site", History, *LOCKED, kinds.UNKNOWN_SITE, kinds.NOT_AUDITED),
    ),
    Door(
        "POST",
        "/v1/models/{site}/activate",
        activate_version,
        "admin",
        _activation,
        _shown("Operation", "Make a version current", Activated, *LOCKED, *READS_JSON, *RECORDED, *UNKNOWN),
    ),
    Door(
        "GET",
        "/v1/models/{site}/{version}",
        show_card,
        "model:read",
        _version,
        _shown("Look-ups", "Model card", Card, *LOCKED, *UNKNOWN, kinds.NO_MODEL),
    ),
)
