"""The exception handlers of the application: every refusal becomes problem+json, and those of protected routes are
recorded in the audit. Responses to anonymous callers are throttled, so that a flood of refusals costs little.
"""

import asyncio
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from app.audit.records import NewRecord
from app.errors import FieldError, NormalcyError
from app.observability import describe_failure
from app.runtime.credentials import ANONYMOUS, LOOPBACK
from app.schemas import problem as problems
from app.schemas.errors import CODES, field_error, field_errors
from app.web.problems import ProblemException, framework_exception, problem_exception, problem_response
from app.web.security import has_valid_credential, runtime_of

PER_SECOND = 100  # responses to anonymous callers, all of them together
BURST = 100  # after a quiet second so many leave at once
LONGEST_SECONDS = 2.0
THROTTLED_SECONDS = "throttled_seconds"  # in the scope: how long the response waited, which is not processing time


class Throttle:
    """Spaces out the responses to anonymous callers. Only their own connections wait; a mistyped key goes unnoticed."""

    def __init__(self) -> None:
        self._last = 0.0  # when the last response that was scheduled leaves

    def delay(self, now: float) -> float:
        """Seconds until the next response may leave."""
        step = 1 / PER_SECOND
        self._last = min(max(self._last, now - BURST * step) + step, now + LONGEST_SECONDS)
        return max(self._last - now, 0.0)


async def throttle(scope: Scope) -> None:
    delay = scope["app"].state.throttle.delay(asyncio.get_running_loop().time())
    if delay and not runtime_of(scope).is_draining:
        scope[THROTTLED_SECONDS] = delay
        await asyncio.sleep(delay)


async def throttle_anonymous(scope: Scope) -> None:
    """For refusals before any route has authenticated the caller."""
    if not has_valid_credential(scope):
        await throttle(scope)


def add_error_handlers(app: FastAPI) -> None:
    app.state.throttle = Throttle()
    app.exception_handler(NormalcyError)(handle_normalcy_error)
    app.exception_handler(RequestValidationError)(handle_validation_error)
    app.exception_handler(HTTPException)(handle_http_exception)


async def handle_normalcy_error(request: Request, error: NormalcyError) -> Response:
    problem = problem_exception(error)
    if problem.status_code >= 500:
        log = structlog.get_logger("web")
        route = request.scope["route"].path
        log.error("refused", request_id=request.state.request_id, route=route, **describe_failure(error))
    return await _refuse(request, problem)


async def handle_validation_error(request: Request, error: RequestValidationError) -> Response:
    """Every error of the request at once, without the values that FastAPI would repeat."""
    return await _refuse(request, ProblemException(problems.INPUT_REFUSED, _field_errors(request, error)))


async def handle_http_exception(request: Request, error: HTTPException) -> Response:
    if isinstance(error, ProblemException):
        return await _refuse(request, error)
    await throttle_anonymous(request.scope)
    return problem_response(framework_exception(error), request.state.request_id)


def _field_errors(request: Request, error: RequestValidationError) -> list[FieldError]:
    in_body: list[dict[str, Any]] = []
    by_parameter: dict[str, dict[str, Any]] = {}
    for one in error.errors():
        if one["loc"][0] == "body":
            in_body.append(one)
        elif one["type"] != "none_required":  # an optional parameter also fails to be None
            by_parameter.setdefault(one["loc"][1], one)
    found = [_parameter_error(str(name), one) for name, one in by_parameter.items()]
    if in_body:
        [body] = request.scope["route"].dependant.body_params
        found += field_errors(body.field_info.annotation, in_body, error.body)
    return found


def _parameter_error(name: str, error: dict[str, Any]) -> FieldError:
    """Validators of path and query parameters raise PydanticCustomError with one of our codes and a sentence's end."""
    is_ours = error["type"] in CODES
    return field_error(
        error["type"] if is_ours else "wrong_type", name, f"{name} {error['msg'] if is_ours else 'is invalid.'}"
    )


async def _refuse(request: Request, error: ProblemException) -> Response:
    principal = request.state.principal
    if request.scope["route"].required_scopes:
        runtime = runtime_of(request.scope)
        runtime.refusals.record(_refusal_record(request, error), principal not in (ANONYMOUS, LOOPBACK))
    if principal is ANONYMOUS:
        await throttle(request.scope)
    return problem_response(error, request.state.request_id)


def _refusal_record(request: Request, error: ProblemException) -> NewRecord:
    """Codes, never values; the path template, never the path that was sent."""
    return NewRecord(
        kind="refusal",
        at=runtime_of(request.scope).clock(),
        principal=request.state.principal.name,
        route=request.scope["route"].path,
        status=error.problem.status,
        request_id=request.state.request_id,
        output={"problem": error.problem.slug, "errors": error.codes},
    )
