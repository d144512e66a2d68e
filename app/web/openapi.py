"""The OpenAPI document: what FastAPI gathers from the doors, every refusal, and answers made by the loaded models."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.formats import problem as kinds
from app.formats.answer import Result, encode, score_response, study_response
from app.formats.problem import MEDIA_TYPE, problem_body
from app.formats.problem import Problem as Kind
from app.inference.scoring import score_with_tails
from app.runtime.runtime import Runtime
from app.schemas.errors import parse
from app.schemas.problem import Problem
from app.schemas.requests import SCORE_EXAMPLES, STUDY_EXAMPLES, ScoreRequest, SiteRequest, StudyRequest
from app.services.score_measurements import ResolvedRequest, make_result

Json = dict[str, Any]

SUMMARY = "Is this aorta wider than it should be for this person, and how sure can we be?"
DESCRIPTION = (
    "The normalcy score of an aortic diameter for a person's age, sex, height and weight, with its interval, the "
    "probability of exceeding a threshold, and how far to trust it. Every answer names the model that gave it and is "
    "on record before it leaves.\n\n**The models that ship with the project were trained on simulated people. They are "
    "for evaluation, not for care.**"
)
TAGS = [
    {"name": "Scores", "description": "Score readings."},
    {"name": "Look-ups", "description": "Sites, limits, models and their cards."},
    {"name": "Audit", "description": "Read the audit and answer recorded requests again."},
    {"name": "Operation", "description": "Activation, health, self-test, metrics."},
]
EXAMPLE_ID = "0199a8c4-5e70-7c3b-9a01-2f6d1c0b4e5a"
SCHEMAS = "#/components/schemas/"

ANY = (kinds.BAD_REQUEST, kinds.HEADERS_TOO_LARGE)
LOCKED = (*ANY, kinds.NO_CREDENTIAL, kinds.SCOPE_MISSING)
READS_JSON = (kinds.NOT_JSON, kinds.BODY_TOO_LARGE, kinds.WRONG_MEDIA_TYPE, kinds.INPUT_REFUSED)
RECORDED = (kinds.NOT_AUDITED, kinds.QUEUE_FULL)


def responses(model: type, *refusals: Kind, description: str = "The answer.") -> dict[int | str, Json]:
    """Of a door: what it answers, and every way in which it refuses."""
    by_status: dict[int, list[Kind]] = defaultdict(list)
    for kind in refusals:
        by_status[kind.status].append(kind)
    answers: dict[int | str, Json] = {200: {"model": model, "description": description}}
    return answers | {status: _refusal(alike) for status, alike in sorted(by_status.items())}


def document(application: FastAPI, runtime: Runtime) -> Json:
    schema = get_openapi(
        title=application.title,
        version=application.version,
        summary=application.summary,
        description=application.description,
        tags=application.openapi_tags,
        routes=application.routes,
    )
    own = Problem.model_json_schema(ref_template=SCHEMAS + "{model}")
    schema["components"]["schemas"] |= {**own.pop("$defs"), Problem.__name__: own}
    _leave_out_the_frameworks_own(schema)
    for path, answer in examples(runtime).items():
        schema["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]["example"] = answer
    return schema


def _leave_out_the_frameworks_own(schema: Json) -> None:
    """FastAPI describes the validation that it would do; here it does none."""
    for operation in (operation for methods in schema["paths"].values() for operation in methods.values()):
        if MEDIA_TYPE not in operation["responses"].get("422", {"content": [MEDIA_TYPE]})["content"]:
            del operation["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)


def examples(runtime: Runtime) -> dict[str, Json]:
    """The answers to the documented requests, by the models that are loaded; none where a site has no model."""
    if not {"SoV", "AA"} <= runtime.loaded_models.current.keys():
        return {}
    asked = parse(ScoreRequest, _first(SCORE_EXAMPLES)).for_site("SoV")
    both = parse(StudyRequest, _first(STUDY_EXAMPLES))
    query = asked.query
    results = [_result(runtime, measurement) for measurement in both.site_requests()]
    return {
        "/v1/sites/{site}/score": _json(
            score_response(EXAMPLE_ID, query.patient, query.diameter_mm, _result(runtime, asked))
        ),
        "/v1/studies/score": _json(study_response(EXAMPLE_ID, both.to_patient(), results)),
    }


def _json(response: object) -> Json:
    plain: Json = msgspec.json.decode(encode(response))
    return plain


def _result(runtime: Runtime, request: SiteRequest) -> Result:
    model = runtime.loaded_models.find_current(request.site)
    [scored] = score_with_tails(model, [request.query])
    return make_result(runtime, ResolvedRequest(model, request), scored, runtime.clock())


def _first(named: Mapping[str, Any]) -> Json:
    value: Json = next(iter(named.values()))["value"]
    return value


def _refusal(alike: list[Kind]) -> Json:
    shown = {kind.slug: {"summary": kind.title, "value": problem_body(kind, EXAMPLE_ID)} for kind in alike}
    content = {MEDIA_TYPE: {"schema": {"$ref": SCHEMAS + Problem.__name__}, "examples": shown}}
    answer: Json = {"description": "; or: ".join(kind.title for kind in alike) + ".", "content": content}
    if alike[0].status == 503:
        answer["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    return answer
