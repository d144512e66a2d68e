"""What the resolver does not support is left to FastAPI."""

from typing import Annotated

import pytest
from fastapi import APIRouter, Body, Depends, Header
from fastapi.responses import Response

from app.schemas.requests import ActivateRequest
from app.web.route import ApiRoute
from app.web.security import allow_anonymous

pytestmark = pytest.mark.resolver

ANYONE = [Depends(allow_anonymous)]


async def plain(body: ActivateRequest) -> Response:
    return Response(body.version)


async def embedded(body: Annotated[ActivateRequest, Body(embed=True)]) -> Response:
    return Response(body.version)


async def from_body(body: ActivateRequest) -> str:
    return body.version


async def body_in_a_dependency(version: Annotated[str, Depends(from_body)]) -> Response:
    return Response(version)


async def uncached(version: Annotated[str, Depends(from_body, use_cache=False)]) -> Response:
    return Response(version)


async def header(accept: Annotated[str, Header()]) -> Response:
    return Response(accept)


async def optional_header(accept: Annotated[str | None, Header()] = None) -> Response:
    return Response(accept)


async def repeated_header(accept: Annotated[list[str] | None, Header()] = None) -> Response:
    return Response(str(accept))


async def no_response(body: ActivateRequest) -> str:
    return body.version


def route(endpoint: object) -> ApiRoute:
    router = APIRouter(route_class=ApiRoute)
    router.add_api_route("/", endpoint, methods=["POST"], dependencies=ANYONE)  # type: ignore[arg-type]
    [made] = router.routes
    assert isinstance(made, ApiRoute)
    return made


@pytest.mark.parametrize("endpoint", [plain, optional_header])
def test_an_ordinary_route_is_precompiled(endpoint: object) -> None:
    assert route(endpoint).precompiled is not None


@pytest.mark.parametrize("endpoint", [embedded, body_in_a_dependency, uncached, header, repeated_header, no_response])
def test_anything_else_is_left_to_fastapi(endpoint: object) -> None:
    assert route(endpoint).precompiled is None
