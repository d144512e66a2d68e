"""Refusals and failures as RFC 9457 problem details: one table of kinds, one shape of body.

`type` is a path on the answering service itself, into the documents that it serves: it leads to the explanation
of the kind from any host name, without internet, and needs no credential. Details are fixed sentences or come
from faults, so that no body repeats what the caller sent, the request id apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.errors import FieldError

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "/guide#problem-"


@dataclass(frozen=True, slots=True)
class Problem:
    slug: str
    status: int
    title: str
    detail: str

    @property
    def type(self) -> str:
        return TYPE_PREFIX + self.slug


NOT_JSON = Problem("not-json", 400, "The body is not acceptable JSON", "See `errors` for what is wrong.")
BAD_REQUEST = Problem(
    "bad-request", 400, "The request cannot be understood", "Its line, headers or query are not valid."
)
NO_CREDENTIAL = Problem(
    "no-credential", 401, "A valid credential is required", "Send `Authorization: Bearer` with an API key or a token."
)
SCOPE_MISSING = Problem(
    "scope-missing", 403, "The credential does not allow this", "It lacks the scope that this call needs."
)
UNKNOWN_ROUTE = Problem("unknown-route", 404, "There is nothing here", "No such address; /docs lists what there is.")
UNKNOWN_SITE = Problem(
    "unknown-site", 404, "Unknown site", "No model is published for this site; GET /v1/sites lists the sites."
)
UNKNOWN_VERSION = Problem(
    "unknown-version", 404, "Unknown model version", "The site has no such version; GET /v1/models lists the versions."
)
UNKNOWN_RECORD = Problem("unknown-record", 404, "Unknown record", "The audit holds no record of this request id.")
METHOD_NOT_ALLOWED = Problem(
    "method-not-allowed", 405, "The method is not allowed here", "The `Allow` header names the methods of this address."
)
STILL_ANSWERING = Problem(
    "still-answering", 409, "The same request is still being answered", "Send it again with the same Idempotency-Key."
)
BODY_TOO_LARGE = Problem(
    "body-too-large", 413, "The body is too large", "Scoring takes at most 16 KiB, a JSON batch 8 MiB."
)
WRONG_MEDIA_TYPE = Problem(
    "wrong-media-type",
    415,
    "The media type is not one of this endpoint",
    "Send JSON as `application/json`; /docs names what else it takes.",
)
INPUT_REFUSED = Problem(
    "input-refused", 422, "The request cannot be answered as it stands", "See `errors` for every fault, by field."
)
KEY_REUSED = Problem(
    "key-reused", 422, "The Idempotency-Key belongs to another request", "Use a new key for a new request."
)
OVER_RATE = Problem("over-rate", 429, "Too many requests", "Wait for the seconds of `Retry-After`.")
HEADERS_TOO_LARGE = Problem("headers-too-large", 431, "The headers are too large", "Send fewer or shorter headers.")
DEFECT = Problem("defect", 500, "The service made a mistake", "Report it with the request id.")
NOT_AUDITED = Problem(
    "not-audited", 503, "The answer could not be recorded", "No answer leaves without its record; try again shortly."
)
QUEUE_FULL = Problem("queue-full", 503, "The service is busy", "Too many requests are waiting; try again shortly.")
NO_MODEL = Problem("no-model", 503, "No model is loaded", "The service cannot score yet; try again shortly.")

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
    problem: Problem, request_id: str, errors: Sequence[FieldError] = (), detail: str | None = None
) -> dict[str, Any]:
    """`detail` replaces the fixed sentence where the service knows more; it must not come from the caller."""
    body: dict[str, Any] = {
        "type": problem.type,
        "title": problem.title,
        "status": problem.status,
        "detail": detail or problem.detail,
        "request_id": request_id,
    }
    if errors:
        body["errors"] = [{"code": one.code, "field": one.field, "message": one.message} for one in errors]
    return body
