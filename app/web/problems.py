"""From what went wrong to what leaves: one table for the whole tree of errors, one shape of response.

Details are the fixed sentences of the kinds or our own; the text of an error may hold what the caller sent, so it
never leaves here.
"""

from collections.abc import Mapping, Sequence

from starlette.exceptions import HTTPException
from starlette.responses import Response

from app import errors
from app.errors import FieldError, NormalcyError
from app.formats import problem as kinds
from app.formats.answer import encode
from app.formats.faults import fault
from app.formats.problem import MEDIA_TYPE, Problem, problem_body

RETRY_SECONDS = "1"

ANSWERS: Mapping[type[NormalcyError], Problem] = {
    errors.MalformedJson: kinds.NOT_JSON,
    errors.InvalidInput: kinds.INPUT_REFUSED,
    errors.InvalidCursor: kinds.INPUT_REFUSED,
    errors.UnknownSite: kinds.UNKNOWN_SITE,
    errors.UnknownVersion: kinds.UNKNOWN_VERSION,
    errors.UnknownRecord: kinds.UNKNOWN_RECORD,
    errors.ActivationFailed: kinds.INPUT_REFUSED,
    errors.NoModelLoaded: kinds.NO_MODEL,
    errors.SiteNotServed: kinds.NO_MODEL,
    errors.InvalidArtefact: kinds.NO_MODEL,
    errors.AuditUnavailable: kinds.NOT_AUDITED,
    errors.AuditQueueFull: kinds.QUEUE_FULL,
    errors.ScoringQueueFull: kinds.QUEUE_FULL,
    errors.DatabaseUnavailable: kinds.NOT_AUDITED,
    errors.DatabaseNotTrusted: kinds.NOT_AUDITED,
    errors.NotDurable: kinds.NOT_AUDITED,
    # From here on: what a running service never meets. Should it, that is a defect.
    errors.UnverifiedResult: kinds.DEFECT,
    errors.InvalidName: kinds.DEFECT,
    errors.VersionExists: kinds.DEFECT,
    errors.InvalidTable: kinds.DEFECT,
    errors.GateFailed: kinds.DEFECT,
    errors.TrainingFailed: kinds.DEFECT,
    errors.FileExists: kinds.DEFECT,
    errors.InvalidSettings: kinds.DEFECT,
    errors.DatabaseNotReady: kinds.DEFECT,
    errors.PendingMigrations: kinds.DEFECT,
    errors.AlreadyServing: kinds.DEFECT,
    errors.InvalidCheckpoint: kinds.DEFECT,
    errors.UnknownKey: kinds.DEFECT,
    errors.NotInstalled: kinds.DEFECT,
}
DETAILS: Mapping[type[NormalcyError], str] = {
    errors.DatabaseUnavailable: "The database cannot be reached, or did not answer in time; try again shortly.",
    errors.SiteNotServed: "The current version of this site cannot be used; GET /health/ready says why.",
}
STATUSES = {404: kinds.UNKNOWN_ROUTE, 405: kinds.METHOD_NOT_ALLOWED}


class Refused(Exception):
    """A request that is answered with a problem."""

    def __init__(self, problem: Problem, faults: Sequence[FieldError] = (), detail: str | None = None) -> None:
        super().__init__(problem.slug)
        self.problem, self.faults, self.detail = problem, tuple(faults), detail

    @property
    def codes(self) -> list[str]:
        """What may be recorded of it: names of faults, never values."""
        return sorted({fault.code for fault in self.faults}) or [self.problem.slug]


def refused(error: NormalcyError) -> Refused:
    """The answer to an error of the tree; one that is not in the table is answered as its nearest ancestor."""
    problem = next((ANSWERS[kind] for kind in type(error).__mro__ if kind in ANSWERS), kinds.DEFECT)
    return Refused(problem, _faults(error), _detail(error))


def problem_response(refusal: Refused, request_id: str, headers: Mapping[str, str] | None = None) -> Response:
    body = problem_body(refusal.problem, request_id, refusal.faults, refusal.detail)
    own = dict(headers or {})
    if refusal.problem.status in (429, 503):
        own["Retry-After"] = RETRY_SECONDS
    if refusal.problem.status == 401:
        own["WWW-Authenticate"] = "Bearer"
    return Response(encode(body), refusal.problem.status, own, MEDIA_TYPE)


def framework_problem(error: HTTPException, request_id: str) -> Response:
    """What the framework itself refuses: no such address, or not with this method."""
    return problem_response(Refused(STATUSES.get(error.status_code, kinds.DEFECT)), request_id, error.headers)


def _faults(error: NormalcyError) -> tuple[FieldError, ...]:
    if isinstance(error, errors.InvalidInput):
        return error.errors
    if isinstance(error, errors.InvalidCursor):
        return (fault("wrong_type", "cursor", "cursor must be one that came with an earlier page of this list."),)
    return (error.error,) if isinstance(error, errors.MalformedJson) else ()


def _detail(error: NormalcyError) -> str | None:
    if isinstance(error, errors.ActivationFailed):
        return error.reason
    return DETAILS.get(type(error))
