"""A request as its audit record stores it, and back: every field in clear, except the patient reference."""

from typing import Any

from app.audit.subject import SubjectHasher
from app.schemas.errors import parse
from app.schemas.requests import ScoreRequest, SiteRequest

Json = dict[str, Any]
SUBJECT = "subject"


def recorded_input(request: SiteRequest, hasher: SubjectHasher) -> Json:
    """The fields of the request with their defaults filled in. The reference is stored as a keyed hash only."""
    stored = request.body.model_dump(exclude_none=True)
    return {**stored, SUBJECT: hasher.hash(request.subject) if request.subject else None}


def request_from_record(site: str, record: Json) -> SiteRequest:
    """The request that was recorded, without its patient reference."""
    return parse(ScoreRequest, {name: value for name, value in record.items() if name != SUBJECT}).for_site(site)
