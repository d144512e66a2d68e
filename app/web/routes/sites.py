"""What can be asked: sites, and the limits of every field."""

from starlette.responses import Response

from app.schemas.lookups import Limits, Sites
from app.services import describe_models
from app.web.call import Call
from app.web.door import Door
from app.web.openapi import LOCKED, responses


async def list_sites(call: Call) -> Response:
    """The sites, their current version, and all versions in memory."""
    return call.answer(describe_models.list_sites(call.runtime))


async def list_limits(call: Call) -> Response:
    """Every allowed and advisory range with its unit, and the choices of every text field: for front ends."""
    return call.answer(describe_models.list_limits())


DOORS = (
    Door(
        "GET",
        "/v1/sites",
        list_sites,
        lock="model:read",
        openapi={
            "include_in_schema": True,
            "tags": ["Look-ups"],
            "summary": "Sites",
            "responses": responses(Sites, *LOCKED),
        },
    ),
    Door(
        "GET",
        "/v1/limits",
        list_limits,
        lock="model:read",
        openapi={
            "include_in_schema": True,
            "tags": ["Look-ups"],
            "summary": "Allowed ranges",
            "responses": responses(Limits, *LOCKED),
        },
    ),
)
