"""From an error to a response: the table of problems by error, and the exception handlers of the application.

Every refusal becomes problem+json (RFC 9457), except that a browser gets a page for an address without one; those of
protected routes are recorded in the audit. Details are the fixed sentences of `app.schemas.problem` or our own.
The text of an error may contain what the caller sent, so it never leaves the service.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from app import errors
from app.audit.records import NewRecord
from app.errors import FieldError, NormalcyError
from app.formats.response import encode
from app.observability import describe_failure
from app.runtime.credentials import ANONYMOUS, LOOPBACK
from app.schemas import problem as problems
from app.schemas.problem import MEDIA_TYPE, ProblemException, ProblemKind, problem_body
from app.schemas.requests import StudyRequest
from app.schemas.validation import CODES, field_error, field_errors
from app.services.score_measurements import unknown_models
from app.web import markdown_page
from app.web.accept import preferred
from app.web.security import current_caller, runtime_of, throttle

RETRY_SECONDS = "1"
HTML = "text/html"
NOT_FOUND = "# Not found\n\nThere is no page at this address. [The calculator]({root}) · [The guide]({root}guide)\n"
DEEPEST = 8  # slashes in the address of a page; ours have four at most, and each makes every link of the page longer
NOT_FOUND_POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'"

PROBLEM_OF: Mapping[type[NormalcyError], ProblemKind] = {
    errors.MalformedJson: problems.NOT_JSON,
    errors.InvalidInput: problems.INPUT_REFUSED,
    errors.InvalidCursor: problems.INPUT_REFUSED,
    errors.LineTooLong: problems.LINE_TOO_LONG,
    errors.UnknownSite: problems.UNKNOWN_SITE,
    errors.UnknownVersion: problems.UNKNOWN_VERSION,
    errors.UnknownRecord: problems.UNKNOWN_RECORD,
    errors.RecordErased: problems.ERASED,
    errors.RecordUnreadable: problems.NOT_AUDITED,
    errors.ActivationFailed: problems.INPUT_REFUSED,
    errors.NoModelLoaded: problems.NO_MODEL,
    errors.SiteNotServed: problems.NO_MODEL,
    errors.InvalidArtefact: problems.NO_MODEL,
    errors.AuditUnavailable: problems.NOT_AUDITED,
    errors.AuditQueueFull: problems.QUEUE_FULL,
    errors.ScoringQueueFull: problems.QUEUE_FULL,
    errors.TooManyBatches: problems.QUEUE_FULL,
    errors.TooManyTokens: problems.QUEUE_FULL,
    errors.StillAnswering: problems.STILL_ANSWERING,
    errors.IdempotencyKeyReused: problems.KEY_REUSED,
    errors.DatabaseUnavailable: problems.NOT_AUDITED,
    errors.DatabaseNotTrusted: problems.NOT_AUDITED,
    errors.NotDurable: problems.NOT_AUDITED,
    # None of these can happen while the service answers requests. If one does, it is a defect.
    errors.UnverifiedResult: problems.DEFECT,
    errors.InvalidName: problems.DEFECT,
    errors.VersionExists: problems.DEFECT,
    errors.InvalidTable: problems.DEFECT,
    errors.GateFailed: problems.DEFECT,
    errors.TrainingFailed: problems.DEFECT,
    errors.FileExists: problems.DEFECT,
    errors.InvalidSettings: problems.DEFECT,
    errors.DatabaseNotReady: problems.DEFECT,
    errors.PendingMigrations: problems.DEFECT,
    errors.AlreadyServing: problems.DEFECT,
    errors.InvalidCheckpoint: problems.DEFECT,
    errors.InvalidPublicKey: problems.DEFECT,
    errors.UnknownKey: problems.DEFECT,
    errors.KeyNotRotated: problems.DEFECT,
    errors.RetirementRefused: problems.DEFECT,
    errors.UnknownSubject: problems.DEFECT,
    errors.NotInstalled: problems.DEFECT,
    errors.InvalidUrl: problems.DEFECT,
    errors.NoResponse: problems.DEFECT,
    errors.CouldNotCheck: problems.DEFECT,
}
DETAIL_OF: Mapping[type[NormalcyError], str] = {
    errors.DatabaseUnavailable: "The database cannot be reached or did not answer in time. Try again shortly.",
    errors.RecordUnreadable: "It is encrypted, and this service does not have its key. The operator has to set it.",
    errors.TooManyBatches: "Too many batches are in progress: yours, or those of all callers. Try again shortly.",
    errors.TooManyTokens: "Your issuer's tokens for one use are used faster than they expire. Try again shortly.",
    errors.SiteNotServed: "The current version of this site cannot be used. GET /health/ready says why.",
}
FRAMEWORK_PROBLEM_OF = {404: problems.UNKNOWN_ROUTE, 405: problems.METHOD_NOT_ALLOWED}


def add_error_handlers(app: FastAPI) -> None:
    app.exception_handler(NormalcyError)(handle_normalcy_error)
    app.exception_handler(RequestValidationError)(handle_validation_error)
    app.exception_handler(ProblemException)(handle_problem_exception)
    app.exception_handler(HTTPException)(handle_framework_exception)


async def handle_normalcy_error(request: Request, error: NormalcyError) -> Response:
    problem = problem_exception(error)
    if problem.problem.status >= 500:
        log = structlog.get_logger("web")
        route = request.scope["route"].path
        log.error("refused", request_id=request.state.request_id, route=route, **describe_failure(error))
    return await _refuse(request, problem)


async def handle_validation_error(request: Request, error: RequestValidationError) -> Response:
    """Every error of the request at once, without the values that FastAPI would repeat."""
    found = _field_errors(request, error)
    if _body_model(request) is StudyRequest:
        runtime = runtime_of(request.scope)
        caller = await current_caller(request, runtime, request.state.principal)
        found += await unknown_models(runtime, caller, error.body, found)
    return await _refuse(request, ProblemException(problems.INPUT_REFUSED, found))


async def handle_problem_exception(request: Request, error: ProblemException) -> Response:
    return await _refuse(request, error)


async def handle_framework_exception(request: Request, error: HTTPException) -> Response:
    """An unknown route, or a method that the route does not have."""
    await throttle(request.scope)
    return _response(request, framework_exception(error))


def _field_errors(request: Request, error: RequestValidationError) -> list[FieldError]:
    in_body: list[dict[str, Any]] = []
    by_parameter: dict[str, dict[str, Any]] = {}
    for one in error.errors():
        if one["loc"][0] == "body":
            in_body.append(one)
        elif one["type"] != "none_required":  # an optional parameter also fails to be None
            by_parameter.setdefault(one["loc"][1], one)
    found = [_parameter_error(request, str(name), one) for name, one in by_parameter.items()]
    if in_body:
        found += field_errors(_body_model(request), in_body, error.body)
    return found


def _body_model(request: Request) -> Any:
    """What the body of the route should be; None if it has none."""
    return next((body.field_info.annotation for body in request.scope["route"].dependant.body_params), None)


def _parameter_error(request: Request, name: str, error: dict[str, Any]) -> FieldError:
    """Validators of path and query parameters raise PydanticCustomError with one of our codes and a sentence's end."""
    if error["type"] == "missing":
        [field] = [each for each in request.scope["route"].dependant.query_params if each.alias == name]
        choices = " or ".join(map(str, get_args(field.field_info.annotation)))
        return field_error("missing", name, f"{name} is required: {choices}." if choices else f"{name} is required.")
    is_ours = error["type"] in CODES
    return field_error(
        error["type"] if is_ours else "wrong_type", name, f"{name} {error['msg'] if is_ours else 'is invalid.'}"
    )


async def _refuse(request: Request, error: ProblemException) -> Response:
    principal = request.state.principal
    if request.scope["route"].required_scopes:
        runtime = runtime_of(request.scope)
        runtime.refusals.record(_refusal_record(request, error), principal not in (ANONYMOUS, LOOPBACK))
    if error.problem.status < 500:  # otherwise it is not the caller's mistake
        await throttle(request.scope)
    return _response(request, error)


def _response(request: Request, error: ProblemException) -> Response:
    """problem+json, but a page for a person who followed a wrong link or mistyped the address of a page."""
    scope = request.scope
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    slashes = path.count("/")
    is_page = error.problem is problems.UNKNOWN_ROUTE and not path.startswith("/v1/") and slashes <= DEEPEST
    if not is_page or preferred(request, (MEDIA_TYPE, HTML)) != HTML:
        return problem_response(error, request.state.request_id)
    headers = {"Content-Security-Policy": NOT_FOUND_POLICY, "Vary": "Accept"}
    return HTMLResponse(_not_found_page("../" * (slashes - 1) or "./"), error.problem.status, headers)


@cache
def _not_found_page(root: str) -> str:
    return markdown_page.render(NOT_FOUND.format(root=root), "Normalcy: not found", root)


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


def problem_exception(error: NormalcyError) -> ProblemException:
    """An error missing from the table is answered like its nearest ancestor."""
    problem = next((PROBLEM_OF[kind] for kind in type(error).__mro__ if kind in PROBLEM_OF), problems.DEFECT)
    return ProblemException(problem, _errors_of(error), _detail(error))


def framework_exception(error: HTTPException) -> ProblemException:
    """For what the framework itself refuses: an unknown route, or a method that the route does not have."""
    found = ProblemException(FRAMEWORK_PROBLEM_OF.get(error.status_code, problems.DEFECT))
    found.headers = error.headers or {}
    return found


def problem_response(error: ProblemException, request_id: str) -> Response:
    body = problem_body(error.problem, request_id, error.errors, error.detail)
    headers = dict(error.headers)
    if error.problem.status in (409, 429, 503):
        headers.setdefault("Retry-After", RETRY_SECONDS)
    if error.problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(encode(body), error.problem.status, headers, MEDIA_TYPE)


def _errors_of(error: NormalcyError) -> tuple[FieldError, ...]:
    if isinstance(error, errors.InvalidInput):
        return error.errors
    if isinstance(error, errors.InvalidCursor):
        return (field_error("wrong_type", "cursor", "cursor must come from an earlier page of this list."),)
    return (error.error,) if isinstance(error, errors.MalformedJson) else ()


def _detail(error: NormalcyError) -> str | None:
    if isinstance(error, errors.ActivationFailed):
        return error.reason
    return DETAIL_OF.get(type(error))
