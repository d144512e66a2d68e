"""The state of the process: liveness, readiness, self-test and metrics."""

from fastapi import APIRouter, Depends, Request, Security
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from app.domain.scopes import Scope
from app.formats.response import encode
from app.schemas import problem as problems
from app.schemas.base import plain
from app.schemas.lookups import Liveness, Readiness, ReadinessChecks, SelfTest
from app.schemas.problem import MEDIA_TYPE, ProblemKind, problem_body
from app.services import check_health
from app.web.error_handlers import RETRY_SECONDS
from app.web.openapi import ANY, NO_SECURITY, PROTECTED, problem_responses
from app.web.route import ApiRoute, json_response
from app.web.security import RuntimeDep, allow_anonymous, authorize, authorize_metrics

NOT_READY = (problems.NO_MODEL, problems.NOT_AUDITED, problems.STOPPING)

router = APIRouter(tags=["Operation"], route_class=ApiRoute)


@router.get(
    "/health/live",
    operation_id="getLiveness",
    summary="Liveness",
    dependencies=[Depends(allow_anonymous)],
    openapi_extra=NO_SECURITY,
    response_model=Liveness,
    response_description="The process is alive.",
    responses=problem_responses(*ANY),
)
async def get_liveness(request: Request) -> Response:
    """Says that the process is alive. Does not look at the database, so that its absence restarts nothing."""
    return json_response(Liveness(request_id=request.state.request_id, status="alive"))


@router.get(
    "/health/ready",
    operation_id="getReadiness",
    summary="Readiness",
    dependencies=[Depends(allow_anonymous)],
    openapi_extra=NO_SECURITY,
    response_model=Readiness,
    response_description="The process takes requests.",
    responses=problem_responses(*ANY, *NOT_READY),
)
async def get_readiness(request: Request, runtime: RuntimeDep) -> Response:
    """Says whether models are loaded, the audit can be written, and the process is not about to stop. If not: 503 with
    the same fields in the problem."""
    state = check_health.check_readiness(runtime, request.state.request_id)
    if state.ready:
        return json_response(state)
    body = problem_body(_why_not(state.checks), request.state.request_id) | plain(state)
    return Response(encode(body), 503, {"Retry-After": RETRY_SECONDS}, MEDIA_TYPE)


@router.get(
    "/v1/selftest",
    operation_id="runSelftest",
    summary="Self-test",
    dependencies=[Security(authorize, scopes=[Scope.MODEL_READ])],
    response_model=SelfTest,
    response_description="How many golden cases passed.",
    responses=problem_responses(*PROTECTED),
)
async def run_selftest(request: Request, runtime: RuntimeDep) -> Response:
    """Runs the golden cases of every loaded model now."""
    return json_response(await check_health.run_selftest(runtime, request.state.request_id))


@router.get(
    "/metrics",
    summary="Counts and times of this process, for Prometheus",
    dependencies=[Security(authorize_metrics, scopes=[Scope.MODEL_READ])],
    include_in_schema=False,
)
async def metrics(runtime: RuntimeDep) -> Response:
    return Response(check_health.read_metrics(runtime), media_type=CONTENT_TYPE_LATEST)


def _why_not(checks: ReadinessChecks) -> ProblemKind:
    if not checks.models_loaded:
        return problems.NO_MODEL
    return problems.NOT_AUDITED if not checks.audit_writable else problems.STOPPING
