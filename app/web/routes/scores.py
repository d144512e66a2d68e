"""Score measurements: one, or all of a study."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Body, Path, Request, Security
from starlette.responses import Response

from app.domain.scopes import Scope
from app.runtime.credentials import Caller
from app.schemas import problem as problems
from app.schemas.answers import ScoreResponse, StudyResponse
from app.schemas.requests import SCORE_EXAMPLES, STUDY_EXAMPLES, ScoreRequest, StudyRequest
from app.services import score_measurements
from app.web.idempotency import IDEMPOTENT, IdempotencyKey, answer_once
from app.web.openapi import PROTECTED, READS_JSON, RECORDED, problem_responses
from app.web.route import ApiRoute
from app.web.security import RuntimeDep, count_measurements, current_caller

ScoringCaller = Annotated[Caller, Security(current_caller, scopes=[Scope.SCORE])]
SitePath = Annotated[
    str,
    Path(
        description="`SoV` (sinus of Valsalva), `AA` (ascending aorta), or a site that your own models add.",
        openapi_examples={"SoV": {"value": "SoV"}, "AA": {"value": "AA"}},
    ),
]
SCORING = (*PROTECTED, *READS_JSON, *RECORDED, problems.NO_MODEL)

router = APIRouter(tags=["Scores"], route_class=ApiRoute)


@router.post(
    "/v1/sites/{site}/score",
    operation_id="scoreMeasurement",
    summary="Score one measurement",
    response_model=ScoreResponse,
    response_description="The score.",
    responses=problem_responses(*SCORING, *IDEMPOTENT, problems.UNKNOWN_SITE, problems.UNKNOWN_VERSION),
)
async def score_measurement(
    request: Request,
    runtime: RuntimeDep,
    caller: ScoringCaller,
    site: SitePath,
    body: Annotated[ScoreRequest, Body(openapi_examples=SCORE_EXAMPLES)],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Compares a diameter with those of the reference population of the same age, sex, height and weight: the expected
    score, its interval, the probability of exceeding each threshold, and how reliable the score is.

    The response leaves only after its audit record is stored."""
    site_request = body.for_site(site)
    work = partial(score_measurements.score_measurement, runtime, caller, site_request)
    return await answer_once(request, runtime, caller, idempotency_key, body.subject, work)


@router.post(
    "/v1/studies/score",
    operation_id="scoreStudy",
    summary="Score one study",
    response_model=StudyResponse,
    response_description="One score per measurement, in order.",
    responses=problem_responses(*SCORING, *IDEMPOTENT),
)
async def score_study(
    request: Request,
    runtime: RuntimeDep,
    caller: ScoringCaller,
    body: Annotated[StudyRequest, Body(openapi_examples=STUDY_EXAMPLES)],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Scores several sites of one patient, each exactly as it would be scored alone. One error rejects the study."""
    count_measurements(request, len(body.measurements))
    work = partial(score_measurements.score_study, runtime, caller, body)
    return await answer_once(request, runtime, caller, idempotency_key, body.subject, work)
