"""Problem details, RFC 9457: the response body, and the table of its kinds.

`type` is a path on the answering service itself, into the guide that it serves: it leads to the explanation of the
kind from any host name, without internet, and needs no credential. Details are fixed sentences or come from field
errors, so that no body repeats what the caller sent, the request id apart.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field

from app.errors import FieldError
from app.schemas.base import ResponseBody, Schema
from app.schemas.errors import CODES

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "/guide#problem-"


if TYPE_CHECKING:
    ErrorCode = str
else:
    ErrorCode = Literal[tuple(CODES)]


class InputError(Schema):
    """What is wrong with one field."""

    code: ErrorCode = Field(description="For programs.")
    field: str = Field(description="Dotted path, as `measurements[1].diameter_mm`; empty: the body as a whole.")
    message: str = Field(description="The field, its unit, what is allowed. Never what was sent.")


class Problem(ResponseBody):
    """There may be further members, as RFC 9457 allows: readiness lists its checks in them."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="Leads to the explanation of this kind of problem.")
    title: str = Field(description="The kind of problem, for people.")
    status: int = Field(description="The status of the response.", ge=400, le=599)
    detail: str = Field(description="What to do about it.")
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


NOT_JSON = ProblemKind("not-json", 400, "The body is not acceptable JSON", "See `errors` for what is wrong.")
BAD_REQUEST = ProblemKind(
    "bad-request", 400, "The request cannot be understood", "Its line, headers or query are not valid."
)
NO_CREDENTIAL = ProblemKind(
    "no-credential", 401, "A valid credential is required", "Send `Authorization: Bearer` with an API key or a token."
)
SCOPE_MISSING = ProblemKind(
    "scope-missing", 403, "The credential does not allow this", "It lacks the scope that this route requires."
)
UNKNOWN_ROUTE = ProblemKind(
    "unknown-route", 404, "There is nothing here", "No such address; /docs lists what there is."
)
UNKNOWN_SITE = ProblemKind(
    "unknown-site", 404, "Unknown site", "No model is published for this site; GET /v1/sites lists the sites."
)
UNKNOWN_VERSION = ProblemKind(
    "unknown-version", 404, "Unknown model version", "The site has no such version; GET /v1/models lists the versions."
)
UNKNOWN_RECORD = ProblemKind("unknown-record", 404, "Unknown record", "The audit holds no record of this request id.")
METHOD_NOT_ALLOWED = ProblemKind(
    "method-not-allowed", 405, "The method is not allowed here", "The `Allow` header names the methods of this address."
)
STILL_ANSWERING = ProblemKind(
    "still-answering", 409, "The same request is still being answered", "Send it again with the same Idempotency-Key."
)
BODY_TOO_LARGE = ProblemKind(
    "body-too-large", 413, "The body is too large", "Scoring takes at most 16 KiB, a JSON batch 8 MiB."
)
WRONG_MEDIA_TYPE = ProblemKind(
    "wrong-media-type",
    415,
    "The media type is not one of this endpoint",
    "Send JSON as `application/json`; /docs names what else it takes.",
)
INPUT_REFUSED = ProblemKind(
    "input-refused", 422, "The request cannot be answered", "See `errors` for everything that is wrong, by field."
)
KEY_REUSED = ProblemKind(
    "key-reused", 422, "The Idempotency-Key belongs to another request", "Use a new key for a new request."
)
OVER_RATE = ProblemKind("over-rate", 429, "Too many requests", "Wait for the seconds of `Retry-After`.")
HEADERS_TOO_LARGE = ProblemKind("headers-too-large", 431, "The headers are too large", "Send fewer or shorter headers.")
DEFECT = ProblemKind("defect", 500, "The service made a mistake", "Report it with the request id.")
NOT_AUDITED = ProblemKind(
    "not-audited", 503, "The answer could not be recorded", "No answer leaves without its record; try again shortly."
)
QUEUE_FULL = ProblemKind("queue-full", 503, "The service is busy", "Too many requests are waiting; try again shortly.")
NO_MODEL = ProblemKind("no-model", 503, "No model is loaded", "The service cannot score yet; try again shortly.")

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
    STILL_ANSWERING,
    BODY_TOO_LARGE,
    WRONG_MEDIA_TYPE,
    INPUT_REFUSED,
    KEY_REUSED,
    OVER_RATE,
    HEADERS_TOO_LARGE,
    DEFECT,
    NOT_AUDITED,
    QUEUE_FULL,
    NO_MODEL,
)


def problem_body(
    kind: ProblemKind, request_id: str, errors: Sequence[FieldError] = (), detail: str | None = None
) -> dict[str, Any]:
    """`detail` replaces the fixed sentence where the service knows more; it must not come from the caller."""
    body: dict[str, Any] = {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": detail or kind.detail,
        "request_id": request_id,
    }
    if errors:
        body["errors"] = [asdict(error) for error in errors]
    return body
