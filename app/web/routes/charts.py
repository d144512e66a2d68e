"""Pictures: a patient among reference people, and how sure a model is over age and body size."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request, Security
from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from app.charts.axes import ChartStyle
from app.charts.theme import ThemeName
from app.domain.limits import DIAMETER
from app.domain.patient import Sex
from app.domain.scopes import Scope
from app.files import decimal_number
from app.runtime.credentials import Caller
from app.schemas import problem as problems
from app.schemas.charts import ChartResponse, ReliabilityMap
from app.schemas.problem import ProblemException
from app.schemas.requests import CHART_EXAMPLES, CURRENT, ChartRequest
from app.schemas.validation import span
from app.services import describe_card, draw_charts
from app.services.draw_charts import PictureName
from app.web.accept import PNG, SVG, preferred
from app.web.openapi import PROTECTED, problem_responses
from app.web.route import JSON, ApiRoute, encoded_response, whole_number
from app.web.routes.scores import SCORING, ScoringCaller, SitePath
from app.web.security import RuntimeDep, count_measurements, current_caller

WIDTHS = (320, 1200)
SCALES = (1, 3)
LONGEST_VERSION = 64  # characters
MEDIA = (JSON, SVG, PNG)


def _choice(*choices: str) -> BeforeValidator:
    def check(text: object) -> object:
        if text not in choices:
            raise PydanticCustomError("not_a_choice", f"must be {', '.join(choices[:-1])} or {choices[-1]}.")
        return text

    return BeforeValidator(check)


def _text(most: int) -> BeforeValidator:
    def check(text: object) -> object:
        length = len(str(text))
        if not 1 <= length <= most:
            code = "too_long" if length else "too_short"
            raise PydanticCustomError(code, f"must be a string of 1 to {most} characters.")
        return text

    return BeforeValidator(check)


def _parse_diameter(text: object) -> float:
    value = decimal_number(str(text))
    if value is None or not DIAMETER.holds(value):
        raise PydanticCustomError("out_of_range", f"must be a number {span(DIAMETER)}.")
    return value


Picture = Annotated[
    PictureName,
    _choice("reference", "density", "visits"),
    Query(description="Which picture, if one is requested by `Accept`."),
]
Width = Annotated[
    Annotated[int, Field(ge=WIDTHS[0], le=WIDTHS[1]), whole_number(*WIDTHS)],
    Query(description="Width in CSS pixels that pictures are laid out for."),
]
Theme = Annotated[ThemeName, _choice("light", "dark"), Query(description="Colours of the pictures.")]
Scale = Annotated[
    Annotated[int, Field(ge=SCALES[0], le=SCALES[1]), whole_number(*SCALES)],
    Query(description="Pixels of a PNG for each CSS pixel."),
]
ReferenceSex = Annotated[
    Literal["male", "female"],
    _choice("male", "female"),
    Query(description="The reference sex.", openapi_examples={"male": {"value": "male"}}),
]
Diameter = Annotated[
    Annotated[float, Field(ge=DIAMETER.low, le=DIAMETER.high), BeforeValidator(_parse_diameter)] | SkipJsonSchema[None],
    Query(description="A diameter in mm: the map then shows the width of the interval of its score."),
]
Version = Annotated[
    str,
    _text(LONGEST_VERSION),
    Query(description="An exact version, or `current`.", min_length=1, max_length=LONGEST_VERSION),
]
ModelReader = Annotated[Caller, Security(current_caller, scopes=[Scope.MODEL_READ])]
PICTURES: dict[str, Any] = {
    SVG: {"schema": {"type": "string"}, "example": '<svg xmlns="http://www.w3.org/2000/svg" role="img">…</svg>'},
    PNG: {"schema": {"type": "string", "format": "binary"}},
}
MAPPING = (
    problems.UNKNOWN_SITE,
    problems.UNKNOWN_VERSION,
    problems.NOT_ACCEPTABLE,
    problems.INPUT_REFUSED,
    problems.QUEUE_FULL,
    problems.NO_MODEL,
)

router = APIRouter(tags=["Pictures"], route_class=ApiRoute)


@router.post(
    "/v1/sites/{site}/chart",
    operation_id="drawChart",
    summary="Draw a patient among reference people",
    response_model=ChartResponse,
    response_description="The data with all pictures, or one picture, as `Accept` asks.",
    responses={
        200: {"content": PICTURES},
        **problem_responses(*SCORING, problems.UNKNOWN_SITE, problems.UNKNOWN_VERSION, problems.NOT_ACCEPTABLE),
    },
)
async def draw_chart(
    request: Request,
    runtime: RuntimeDep,
    caller: ScoringCaller,
    site: SitePath,
    body: Annotated[ChartRequest, Body(openapi_examples=CHART_EXAMPLES)],
    picture: Picture = "reference",
    width: Width = 640,
    theme: Theme = "light",
    scale: Scale = 2,
) -> Response:
    """Reference curves over age at this body size, with the patient's point, the density of the score, and the scores
    of several visits.

    `Accept: application/json` (the default) gives the data and all pictures as SVG texts; `image/svg+xml` or
    `image/png` gives the picture that `picture` names; 406 if none of them is acceptable. The same request gives the
    same picture, byte for byte. A response with a score leaves only after its audit records are stored: one for the
    measurement and each visit."""
    media, style = _media_type(request), ChartStyle(width, theme)
    count_measurements(request, body.has_diameter + len(body.visits))
    if media == JSON:
        return _varying(encoded_response(await draw_charts.draw_chart(runtime, caller, site, body, style)))
    pixels = scale if media == PNG else None
    drawn = await draw_charts.draw_picture(runtime, caller, site, body, picture, style, pixels)
    return _varying(Response(drawn, media_type=media))


@router.get(
    "/v1/sites/{site}/reliability-map",
    operation_id="drawReliabilityMap",
    summary="Draw how sure a model is over age and body size",
    response_model=ReliabilityMap,
    response_description="The data with the picture, or the picture alone, as `Accept` asks.",
    responses={200: {"content": PICTURES}, **problem_responses(*PROTECTED, *MAPPING)},
)
async def draw_map(
    request: Request,
    runtime: RuntimeDep,
    caller: ModelReader,
    site: SitePath,
    sex: ReferenceSex,
    diameter_mm: Diameter = None,
    model_version: Version = CURRENT,
    width: Width = 640,
    theme: Theme = "light",
    scale: Scale = 2,
) -> Response:
    """The width W2 over age and body surface area, with height and weight at the cohort's median body mass index for
    age and sex; with `diameter_mm` the width of the interval of that diameter's score. Cells where the model gives no
    score are marked."""
    media, style, reference = _media_type(request), ChartStyle(width, theme), Sex(sex)
    drawing = (runtime, caller, site, model_version, reference, diameter_mm, style)
    if media == JSON:
        return _varying(encoded_response(await describe_card.draw_map(*drawing)))
    drawn = await describe_card.draw_map_picture(*drawing, scale if media == PNG else None)
    return _varying(Response(drawn, media_type=media))


def _media_type(request: Request) -> str:
    media = preferred(request, MEDIA)
    if media is None:
        raise ProblemException(problems.NOT_ACCEPTABLE)
    return media


def _varying(response: Response) -> Response:
    response.headers["Vary"] = "Accept"
    return response
