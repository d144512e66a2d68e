"""What the service offers: sites, limits, published models, their cards and history; and activation of a version."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Security
from starlette.responses import Response

from app.domain.scopes import Scope
from app.runtime.credentials import Caller
from app.schemas import problem as problems
from app.schemas.lookups import Activation, ModelHistory, ModelList, RequestLimits, SiteList
from app.schemas.model_card import ModelCard
from app.schemas.requests import ActivateRequest
from app.services import manage_models
from app.web.openapi import PROTECTED, READS_JSON, RECORDED, problem_responses
from app.web.route import ApiRoute, json_response
from app.web.routes.scores import SitePath
from app.web.security import RuntimeDep, authorize, current_caller

AdminCaller = Annotated[Caller, Security(current_caller, scopes=[Scope.ADMIN])]
VersionPath = Annotated[
    str,
    Path(
        description="An exact version, or `current`.",
        openapi_examples={"1.0.0": {"value": "1.0.0"}, "current": {"value": "current"}},
    ),
]
MODEL_READ = Security(authorize, scopes=[Scope.MODEL_READ])
UNKNOWN = (problems.UNKNOWN_SITE, problems.UNKNOWN_VERSION)

router = APIRouter(route_class=ApiRoute)


@router.get(
    "/v1/sites",
    operation_id="listSites",
    tags=["Look-ups"],
    summary="Sites",
    dependencies=[MODEL_READ],
    response_model=SiteList,
    response_description="The sites.",
    responses=problem_responses(*PROTECTED),
)
async def list_sites(request: Request, runtime: RuntimeDep) -> Response:
    """Lists the sites with their current version and all versions in memory."""
    return json_response(manage_models.list_sites(runtime, request.state.request_id))


@router.get(
    "/v1/limits",
    operation_id="getLimits",
    tags=["Look-ups"],
    summary="Allowed ranges",
    dependencies=[MODEL_READ],
    response_model=RequestLimits,
    response_description="The limits.",
    responses=problem_responses(*PROTECTED),
)
async def get_limits(request: Request) -> Response:
    """Lists every allowed and advisory range with its unit, and the choices of every text field, for front ends."""
    return json_response(manage_models.list_limits(request.state.request_id))


@router.get(
    "/v1/models",
    operation_id="listModels",
    tags=["Look-ups"],
    summary="Published models",
    dependencies=[MODEL_READ],
    response_model=ModelList,
    response_description="The published versions.",
    responses=problem_responses(*PROTECTED),
)
async def list_models(request: Request, runtime: RuntimeDep) -> Response:
    """Lists every published version with its digest."""
    return json_response(await manage_models.list_models(runtime, request.state.request_id))


@router.get(
    "/v1/models/{site}/history",
    operation_id="getModelHistory",
    tags=["Look-ups"],
    summary="Activations of a site",
    dependencies=[MODEL_READ],
    response_model=ModelHistory,
    response_description="The active periods, oldest first.",
    responses=problem_responses(*PROTECTED, problems.UNKNOWN_SITE, problems.NOT_AUDITED),
)
async def get_model_history(request: Request, runtime: RuntimeDep, site: SitePath) -> Response:
    """Says which version was current from when to when, and who changed it."""
    return json_response(await manage_models.activation_history(runtime, request.state.request_id, site))


@router.post(
    "/v1/models/{site}/activate",
    operation_id="activateModel",
    tags=["Operation"],
    summary="Make a version current",
    response_model=Activation,
    response_description="The activation.",
    responses=problem_responses(*PROTECTED, *READS_JSON, *RECORDED, *UNKNOWN),
)
async def activate_model(runtime: RuntimeDep, caller: AdminCaller, site: SitePath, body: ActivateRequest) -> Response:
    """Loads a version beside the current one, verifies its digest, runs its golden cases, and swaps. Every process
    follows within two seconds. On failure the previous version keeps serving."""
    return json_response(await manage_models.activate_model(runtime, caller, site, body.version))


@router.get(  # after the routes of the same shape: `history` and `activate` are not versions
    "/v1/models/{site}/{version}",
    operation_id="getModelCard",
    tags=["Look-ups"],
    summary="Model card",
    dependencies=[MODEL_READ],
    response_model=ModelCard,
    response_description="The model card.",
    responses=problem_responses(*PROTECTED, *UNKNOWN, problems.NO_MODEL),
)
async def get_model_card(request: Request, runtime: RuntimeDep, site: SitePath, version: VersionPath) -> Response:
    """Describes a version: cohort, ranges, kernel, training, calibration, convention and limits of reliability."""
    return json_response(await manage_models.model_card(runtime, request.state.request_id, site, version))
