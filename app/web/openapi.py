"""The OpenAPI document: what FastAPI collects from the routes, plus what it cannot know.

That is: problem+json with an example of every refusal, the `X-Request-ID` header of requests and responses, and
example responses computed by the loaded models.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, TypeAdapter

from app.errors import FieldError, InvalidInput, MalformedJson
from app.formats import strict_json
from app.formats.response import Result, encode, score_response, study_response
from app.inference.scoring import score_with_tails
from app.runtime.runtime import Runtime
from app.schemas import problem as problems
from app.schemas.answers import BatchEnd
from app.schemas.base import REQUEST_ID
from app.schemas.problem import MEDIA_TYPE, Problem, ProblemKind, problem_body
from app.schemas.requests import (
    SCORE_EXAMPLES,
    STUDY_EXAMPLES,
    BatchItem,
    BatchRequest,
    ScoreRequest,
    SiteRequest,
    StudyRequest,
)
from app.schemas.validation import parse
from app.services.score_measurements import ResolvedRequest, make_result

Json = dict[str, Any]

SUMMARY = "Is this aorta wider than it should be for this person, and how sure can we be?"
DESCRIPTION = (
    "The normalcy score of an aortic diameter for a person's age, sex, height and weight, with its interval, the "
    "probability of exceeding a threshold, and its reliability. Every response names the model that computed it and is "
    "recorded in the audit before it leaves.\n\n**The models that ship with the project were trained on simulated "
    "people. They are for evaluation, not for care.**"
)
TAGS = [
    {"name": "Scores", "description": "Score measurements."},
    {"name": "Pictures", "description": "Draw a patient among reference people, and how sure a model is."},
    {"name": "Look-ups", "description": "Sites, limits, models and their cards."},
    {"name": "Audit", "description": "Read the audit and recompute recorded scores."},
    {"name": "Operation", "description": "Activation, health, self-test, metrics."},
]
LICENSE = {"name": "All rights reserved", "identifier": "LicenseRef-Proprietary"}
SERVERS = [{"url": "/", "description": "The service that serves this document."}]
NO_SECURITY: Json = {"security": []}  # says that an operation needs no credential
BATCH_CSV = "id,site,age_years,sex,height_cm,weight_kg,diameter_mm\na,SoV,55,male,176,84,41\n"
EXAMPLE_ID = "0199a8c4-5e70-7c3b-9a01-2f6d1c0b4e5a"
SCHEMAS = "#/components/schemas/"

ANY = (problems.BAD_REQUEST, problems.HEADERS_TOO_LARGE)
PROTECTED = (*ANY, problems.NO_CREDENTIAL, problems.SCOPE_MISSING, problems.OVER_RATE, problems.INPUT_REFUSED)
READS_JSON = (problems.NOT_JSON, problems.BODY_TOO_LARGE, problems.WRONG_MEDIA_TYPE, problems.INPUT_REFUSED)
RECORDED = (problems.NOT_AUDITED, problems.QUEUE_FULL)


def _first(named: Mapping[str, Any]) -> Json:
    value: Json = next(iter(named.values()))["value"]
    return value


def _example_errors(reject: Callable[[], object]) -> list[FieldError]:
    """What the service itself says, so that the examples cannot differ from it."""
    try:
        reject()
    except MalformedJson as error:
        return [error.error]
    except InvalidInput as error:
        return list(error.errors)
    raise AssertionError("The example is acceptable.")


EXAMPLE_ERRORS = {
    problems.NOT_JSON: _example_errors(lambda: strict_json.loads(b'{"age_years": 55,}')),
    problems.INPUT_REFUSED: _example_errors(
        lambda: parse(ScoreRequest, {**_first(SCORE_EXAMPLES), "height_cm": 1.76, "diameter_mm": 4.1})
    ),
}
REQUEST_HEADER: Json = {
    "name": "X-Request-ID",
    "in": "header",
    "required": False,
    "description": "Your own trace id: 1 to 64 characters of `A-Z a-z 0-9 . _ -`. Any other value is replaced by a new "
    "UUIDv7. The response repeats it.",
    "schema": {"type": "string"},
    "example": "echo-lab-7.2026-11-15",
}
RESPONSE_HEADER: Json = {
    "description": "The id of this request: yours if it was valid, otherwise a new UUIDv7.",
    "required": True,
    "schema": {"type": "string", "pattern": REQUEST_ID},
    "example": EXAMPLE_ID,
}
RETRY_AFTER: Json = {"description": "Seconds to wait before trying again.", "schema": {"type": "integer"}, "example": 1}
CHALLENGE: Json = {"description": "The scheme to authenticate with.", "schema": {"type": "string"}, "example": "Bearer"}


def problem_responses(*refusals: ProblemKind) -> dict[int | str, Json]:
    """Every way in which an operation refuses, by status, for `responses=`."""
    by_status: dict[int, list[ProblemKind]] = defaultdict(list)
    for kind in refusals:
        by_status[kind.status].append(kind)
    return {status: _problem_response(kinds) for status, kinds in sorted(by_status.items())}


def _problem_response(kinds: list[ProblemKind]) -> Json:
    examples = {
        kind.slug: {
            "summary": kind.title,
            "value": problem_body(kind, EXAMPLE_ID, EXAMPLE_ERRORS.get(kind, ())),
        }
        for kind in kinds
    }
    content = {MEDIA_TYPE: {"schema": {"$ref": SCHEMAS + Problem.__name__}, "examples": examples}}
    return {"description": "; or: ".join(kind.title for kind in kinds) + ".", "content": content}


def batch_body(request: type[BaseModel], examples: Mapping[str, Any]) -> Json:
    """The three media types of a batch, which FastAPI cannot know."""
    schema = {"$ref": SCHEMAS + request.__name__}
    item = {"$ref": SCHEMAS + BatchItem.__name__}
    content = {
        "application/json": {"schema": schema, "examples": dict(examples)},
        "application/x-ndjson": {"schema": item, "example": _first(examples)["items"][0]},  # of one line
        "text/csv": {"schema": {"type": "string", "format": "binary"}, "example": BATCH_CSV},
    }
    return {"requestBody": {"required": True, "content": content}}


def batch_responses() -> dict[int | str, Json]:
    line = {"oneOf": [{"$ref": SCHEMAS + one} for one in ("BatchScore", "BatchError", "BatchEnd")]}
    return {
        200: {
            "content": {
                "application/x-ndjson": {"schema": line},
                "text/csv": {"schema": {"type": "string"}},
            }
        }
    }


def document(application: FastAPI, runtime: Runtime) -> Json:
    schema = get_openapi(
        title=application.title,
        version=application.version,
        summary=application.summary,
        description=application.description,
        tags=application.openapi_tags,
        routes=application.routes,
        license_info=LICENSE,
        servers=SERVERS,
    )
    components = schema["components"]
    problem = Problem.model_json_schema(ref_template=SCHEMAS + "{model}")
    components["schemas"] |= {**problem.pop("$defs"), Problem.__name__: problem}
    components["parameters"] = {"RequestId": REQUEST_HEADER}
    components["headers"] = {"RequestId": RESPONSE_HEADER, "RetryAfter": RETRY_AFTER, "Challenge": CHALLENGE}
    components["schemas"] |= _batch_schemas()
    for operation in _operations(schema):
        _complete(operation)
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    for path, answer in examples(runtime).items():
        schema["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]["example"] = answer
    return schema


def _batch_schemas() -> Json:
    """Of bodies that the routes read and write themselves."""
    found: Json = {}
    for model in (BatchRequest, BatchItem, BatchEnd):
        own = TypeAdapter(model).json_schema(ref_template=SCHEMAS + "{model}")
        found |= {**own.pop("$defs", {}), model.__name__: own}
    return found


def _operations(schema: Json) -> Iterator[Json]:
    for methods in schema["paths"].values():
        yield from methods.values()


def _complete(operation: Json) -> None:
    """Adds the headers, and removes the 422 of FastAPI's own shape where we declare none."""
    responses = operation["responses"]
    if "422" in responses and MEDIA_TYPE not in responses["422"]["content"]:
        del responses["422"]
    operation.setdefault("parameters", []).append({"$ref": "#/components/parameters/RequestId"})
    for status, response in responses.items():
        headers = response.setdefault("headers", {})
        headers["X-Request-ID"] = {"$ref": "#/components/headers/RequestId"}
        if status in ("409", "429", "503"):
            headers["Retry-After"] = {"$ref": "#/components/headers/RetryAfter"}
        if status == "401":
            headers["WWW-Authenticate"] = {"$ref": "#/components/headers/Challenge"}


def examples(runtime: Runtime) -> dict[str, Json]:
    """The responses to the documented requests, from the loaded models; none if a site has no model."""
    if not {"SoV", "AA"} <= runtime.loaded_models.current.keys():
        return {}
    asked = parse(ScoreRequest, _first(SCORE_EXAMPLES)).for_site("SoV")
    both = parse(StudyRequest, _first(STUDY_EXAMPLES))
    results = [_result(runtime, measurement) for measurement in both.site_requests()]
    return {
        "/v1/sites/{site}/score": _json(score_response(EXAMPLE_ID, _result(runtime, asked))),
        "/v1/studies/score": _json(study_response(EXAMPLE_ID, results)),
    }


def _json(response: object) -> Json:
    plain: Json = msgspec.json.decode(encode(response))
    return plain


def _result(runtime: Runtime, request: SiteRequest) -> Result:
    model = runtime.loaded_models.find_current(request.site)
    [scored] = score_with_tails(model, [request.query])
    return make_result(runtime, ResolvedRequest(model, request), scored, runtime.clock())
