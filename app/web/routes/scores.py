"""Score readings: one, or all of a study."""

from typing import Annotated

from fastapi import Body, Path
from starlette.responses import Response

from app.formats import problem as kinds
from app.schemas.answers import ScoreResponse, StudyResponse
from app.schemas.errors import parse
from app.schemas.requests import SCORE_EXAMPLES, STUDY_EXAMPLES, ScoreRequest, StudyRequest
from app.services import score_measurements
from app.web.call import Call
from app.web.door import Door
from app.web.openapi import LOCKED, READS_JSON, RECORDED, responses

SitePath = Annotated[
    str,
    Path(
        description="`SoV` (sinus of Valsalva), `AA` (ascending aorta), or a site of your own models.",
        openapi_examples={"SoV": {"value": "SoV"}, "AA": {"value": "AA"}},
    ),
]


async def score_one(call: Call) -> Response:
    """Where this diameter stands among those of the reference people of the same age, sex, height and weight: the
    expected score, its interval, the probability of exceeding each threshold, and how far to trust it.

    The answer is on record before it leaves."""
    request = parse(ScoreRequest, await call.document()).for_site(call.parameter("site"))
    return call.answer(await score_measurements.score_measurement(call.runtime, call.caller(), request))


async def score_study(call: Call) -> Response:
    """Several sites of one patient at once, each scored as it would be alone. One fault refuses the whole study."""
    request = parse(StudyRequest, await call.document())
    return call.answer(await score_measurements.score_study(call.runtime, call.caller(), request))


def _one(site: SitePath, body: Annotated[ScoreRequest, Body(openapi_examples=SCORE_EXAMPLES)]) -> None: ...


def _study(body: Annotated[StudyRequest, Body(openapi_examples=STUDY_EXAMPLES)]) -> None: ...


SCORING = (*LOCKED, *READS_JSON, *RECORDED, kinds.NO_MODEL)

DOORS = (
    Door(
        "POST",
        "/v1/sites/{site}/score",
        score_one,
        lock="score",
        documented=_one,
        openapi={
            "include_in_schema": True,
            "tags": ["Scores"],
            "summary": "Score one measurement",
            "responses": responses(ScoreResponse, *SCORING, kinds.UNKNOWN_SITE, kinds.UNKNOWN_VERSION),
        },
    ),
    Door(
        "POST",
        "/v1/studies/score",
        score_study,
        lock="score",
        documented=_study,
        openapi={
            "include_in_schema": True,
            "tags": ["Scores"],
            "summary": "Score one study",
            "responses": responses(StudyResponse, *SCORING),
        },
    ),
)
