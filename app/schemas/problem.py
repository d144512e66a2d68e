"""Problem details, RFC 9457: the response body, the table of its kinds, and the exception that carries one.

`type` is a path on the answering service itself, into the guide that it serves: it leads to the explanation of the
kind from any host name, without internet, and needs no credential. Details are fixed sentences or come from field
errors, so that no body repeats what the caller sent, the request id apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, Field

from app.errors import FieldError
from app.schemas.base import RequestId, Schema, plain
from app.schemas.validation import ErrorCode

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "/guide#problem-"


class InputError(Schema):
    """What is wrong with one field."""

    code: ErrorCode = Field(description="For programs.")
    field: str = Field(description="Dotted path, as `measurements[1].diameter_mm`; empty: the body as a whole.")
    message: str = Field(description="The field, its unit, what is allowed. Never what was sent.")


class Problem(Schema):
    """There may be further members, as RFC 9457 allows: readiness lists its checks in them."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="Leads to the explanation of this kind of problem.")
    title: str = Field(description="The kind of problem, for people.")
    status: int = Field(description="The status of the response.", ge=400, le=599)
    detail: str = Field(description="What to do about it.")
    request_id: RequestId
    errors: list[InputError] = Field(default_factory=list, description="Every error of the input at once.")


@dataclass(frozen=True, slots=True)
class ProblemKind:
    slug: str
    status: int
    title: str
    detail: str

    @property
    def type(self) -> str:
        return TYPE_PREFIX + self.slug


NOT_JSON = ProblemKind("not-json", 400, "Invalid JSON", "The body cannot be read as JSON. See `errors`.")
BAD_REQUEST = ProblemKind("bad-request", 400, "Bad request", "The request line or the headers are invalid.")
NO_CREDENTIAL = ProblemKind(
    "no-credential", 401, "Authentication required", "Send a valid API key or token as `Authorization: Bearer …`."
)
SCOPE_MISSING = ProblemKind(
    "scope-missing", 403, "Scope missing", "The API key or token does not have the scope that this route requires."
)
UNKNOWN_ROUTE = ProblemKind(
    "unknown-route", 404, "Not found", "There is nothing at this address. /docs lists all routes."
)
UNKNOWN_SITE = ProblemKind(
    "unknown-site", 404, "Unknown site", "No model is published for this site. GET /v1/sites lists the sites."
)
UNKNOWN_VERSION = ProblemKind(
    "unknown-version", 404, "Unknown model version", "The site has no such version. GET /v1/models lists the versions."
)
UNKNOWN_RECORD = ProblemKind("unknown-record", 404, "Unknown record", "The audit has no record with this request id.")
METHOD_NOT_ALLOWED = ProblemKind(
    "method-not-allowed", 405, "Method not allowed", "The `Allow` header lists the methods that this address accepts."
)
NOT_ACCEPTABLE = ProblemKind(
    "not-acceptable",
    406,
    "No acceptable media type",
    "The header `Accept` must allow one of application/json, image/svg+xml and image/png.",
)
STILL_ANSWERING = ProblemKind(
    "still-answering", 409, "Request still in progress", "Try again later with the same Idempotency-Key."
)
ERASED = ProblemKind(
    "erased", 410, "Erased", "What was recorded about this patient was erased: the key that encrypted it was destroyed."
)
BODY_TOO_LARGE = ProblemKind("body-too-large", 413, "Body too large", "The body may have at most 16 KiB.")
BATCH_TOO_LARGE = ProblemKind(
    "body-too-large", 413, "Body too large", "The body may have at most 8 MiB. Send more items as application/x-ndjson."
)
LINE_TOO_LONG = ProblemKind("line-too-long", 413, "Line too long", "A line of a stream may have at most 64 KiB.")
WRONG_MEDIA_TYPE = ProblemKind(
    "wrong-media-type",
    415,
    "Unsupported media type",
    "Send JSON as `application/json`; /docs names what else it takes.",
)
BATCH_MEDIA_TYPE = ProblemKind(
    "wrong-media-type",
    415,
    "Unsupported media type",
    "Send application/json, application/x-ndjson or text/csv, in UTF-8 and without a content encoding.",
)
INPUT_REFUSED = ProblemKind(
    "input-refused", 422, "Invalid input", "See `errors` for everything that is wrong, by field."
)
KEY_REUSED = ProblemKind(
    "key-reused", 422, "Idempotency-Key already used", "It belongs to another request. Use a new key for a new request."
)
OVER_RATE = ProblemKind("over-rate", 429, "Too many requests", "Wait as many seconds as `Retry-After` says.")
HEADERS_TOO_LARGE = ProblemKind("headers-too-large", 431, "Headers too large", "Send fewer or shorter headers.")
DEFECT = ProblemKind("defect", 500, "Internal error", "This is a defect of the service. Report it with the request id.")
NOT_AUDITED = ProblemKind(
    "not-audited", 503, "Audit unavailable", "The response could not be recorded, so none is given. Try again shortly."
)
QUEUE_FULL = ProblemKind("queue-full", 503, "Service busy", "Too many requests are waiting. Try again shortly.")
STOPPING = ProblemKind(
    "stopping", 503, "Service stopping", "Send the request to another process, or try again shortly."
)
NO_MODEL = ProblemKind("no-model", 503, "No model loaded", "The service cannot score yet. Try again shortly.")

PROBLEMS = (
    NOT_JSON,
    BAD_REQUEST,
    NO_CREDENTIAL,
    SCOPE_MISSING,
    UNKNOWN_ROUTE,
    UNKNOWN_SITE,
    UNKNOWN_VERSION,
    UNKNOWN_RECORD,
    METHOD_NOT_ALLOWED,
    NOT_ACCEPTABLE,
    STILL_ANSWERING,
    ERASED,
    BODY_TOO_LARGE,
    LINE_TOO_LONG,
    WRONG_MEDIA_TYPE,
    INPUT_REFUSED,
    KEY_REUSED,
    OVER_RATE,
    HEADERS_TOO_LARGE,
    DEFECT,
    NOT_AUDITED,
    QUEUE_FULL,
    STOPPING,
    NO_MODEL,
)


class ProblemException(Exception):
    """Raised anywhere in a request to answer it with a problem."""

    def __init__(self, problem: ProblemKind, errors: Sequence[FieldError] = (), detail: str | None = None) -> None:
        super().__init__(problem.slug)
        self.problem, self.errors = problem, tuple(errors)
        self.detail = detail or problem.detail
        self.headers: Mapping[str, str] = {}

    @property
    def codes(self) -> list[str]:
        """What the audit may record of it: error codes, never values."""
        return sorted({error.code for error in self.errors}) or [self.problem.slug]


def problem_body(
    kind: ProblemKind, request_id: str, errors: Sequence[FieldError] = (), detail: str | None = None
) -> dict[str, Any]:
    """`detail` replaces the fixed sentence where the service knows more; it must not come from the caller."""
    body = Problem(
        type=kind.type, title=kind.title, status=kind.status, detail=detail or kind.detail, request_id=request_id
    )
    if errors:
        body.errors = [InputError.model_validate(error, from_attributes=True) for error in errors]
    return plain(body)
