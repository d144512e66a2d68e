"""Maps every error to a problem (RFC 9457) and builds the response.

Details are the fixed sentences of the problem table or our own. The text of an error may contain what the caller sent,
so it never leaves the service.
"""

from collections.abc import Mapping, Sequence

from starlette.exceptions import HTTPException
from starlette.responses import Response

from app import errors
from app.errors import FieldError, NormalcyError
from app.formats.response import encode
from app.schemas import problem as problems
from app.schemas.errors import field_error
from app.schemas.problem import MEDIA_TYPE, ProblemKind, problem_body

RETRY_SECONDS = "1"

PROBLEM_OF: Mapping[type[NormalcyError], ProblemKind] = {
    errors.MalformedJson: problems.NOT_JSON,
    errors.InvalidInput: problems.INPUT_REFUSED,
    errors.InvalidCursor: problems.INPUT_REFUSED,
    errors.UnknownSite: problems.UNKNOWN_SITE,
    errors.UnknownVersion: problems.UNKNOWN_VERSION,
    errors.UnknownRecord: problems.UNKNOWN_RECORD,
    errors.ActivationFailed: problems.INPUT_REFUSED,
    errors.NoModelLoaded: problems.NO_MODEL,
    errors.SiteNotServed: problems.NO_MODEL,
    errors.InvalidArtefact: problems.NO_MODEL,
    errors.AuditUnavailable: problems.NOT_AUDITED,
    errors.AuditQueueFull: problems.QUEUE_FULL,
    errors.ScoringQueueFull: problems.QUEUE_FULL,
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
    errors.UnknownKey: problems.DEFECT,
    errors.NotInstalled: problems.DEFECT,
}
DETAIL_OF: Mapping[type[NormalcyError], str] = {
    errors.DatabaseUnavailable: "The database cannot be reached or did not answer in time. Try again shortly.",
    errors.SiteNotServed: "The current version of this site cannot be used. GET /health/ready says why.",
}
FRAMEWORK_PROBLEM_OF = {404: problems.UNKNOWN_ROUTE, 405: problems.METHOD_NOT_ALLOWED}


class ProblemException(HTTPException):
    """Raised anywhere in a request to answer it with a problem."""

    def __init__(self, problem: ProblemKind, errors: Sequence[FieldError] = (), detail: str | None = None) -> None:
        super().__init__(problem.status, detail or problem.detail)
        self.problem, self.errors = problem, tuple(errors)

    @property
    def codes(self) -> list[str]:
        """What the audit may record of it: error codes, never values."""
        return sorted({error.code for error in self.errors}) or [self.problem.slug]


def problem_exception(error: NormalcyError) -> ProblemException:
    """An error missing from the table is answered like its nearest ancestor."""
    problem = next((PROBLEM_OF[kind] for kind in type(error).__mro__ if kind in PROBLEM_OF), problems.DEFECT)
    return ProblemException(problem, _field_errors(error), _detail(error))


def framework_exception(error: HTTPException) -> ProblemException:
    """For what the framework itself refuses: an unknown route, or a method that the route does not have."""
    found = ProblemException(FRAMEWORK_PROBLEM_OF.get(error.status_code, problems.DEFECT))
    found.headers = error.headers
    return found


def problem_response(error: ProblemException, request_id: str) -> Response:
    body = problem_body(error.problem, request_id, error.errors, error.detail)
    headers = dict(error.headers or {})
    if error.problem.status in (429, 503):
        headers["Retry-After"] = RETRY_SECONDS
    if error.problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(encode(body), error.problem.status, headers, MEDIA_TYPE)


def _field_errors(error: NormalcyError) -> tuple[FieldError, ...]:
    if isinstance(error, errors.InvalidInput):
        return error.errors
    if isinstance(error, errors.InvalidCursor):
        return (field_error("wrong_type", "cursor", "cursor must come from an earlier page of this list."),)
    return (error.error,) if isinstance(error, errors.MalformedJson) else ()


def _detail(error: NormalcyError) -> str | None:
    if isinstance(error, errors.ActivationFailed):
        return error.reason
    return DETAIL_OF.get(type(error))
