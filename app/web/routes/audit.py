"""The audit: look records up, and answer recorded requests again. Reading is itself recorded."""

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query
from starlette.responses import Response

from app.database.records import Filter
from app.formats import problem as kinds
from app.schemas.lookups import AuditPage, Replayed
from app.services import audit_records
from app.services.replay import replay
from app.store.registry import SITE
from app.web.call import Call
from app.web.door import Door
from app.web.openapi import LOCKED, RECORDED, responses
from app.web.parameters import LAST_ITEM, cursor, item, moment, request_id, site_name

MOMENT = "ISO 8601, in UTC unless it says otherwise."
Cursor = Annotated[str, Query(description="From an earlier page.", default_factory=str, min_length=1)]
RequestId = Annotated[str, Path(description="The `request_id` of the answer.")]


async def find_records(call: Call) -> Response:
    """What is on record under a request id, oldest first."""
    place = cursor(call.query(("cursor",)))
    return call.answer(
        await audit_records.get_records(call.runtime, call.caller(), request_id(call.parameter("request_id")), place)
    )


async def list_records(call: Call) -> Response:
    """Records in the order of time, in pages. `from` is included, `to` is not."""
    given = call.query(("from", "to", "site", "cursor"))
    wanted = Filter(start=moment(given, "from"), end=moment(given, "to"), site=site_name(given))
    return call.answer(await audit_records.list_records(call.runtime, call.caller(), wanted, cursor(given)))


async def replay_records(call: Call) -> Response:
    """Answer a recorded request again, with the recorded version of the model, and compare every number."""
    number = item(call.query(("item",)))
    return call.answer(await replay(call.runtime, call.caller(), request_id(call.parameter("request_id")), number))


def _one(request_id: RequestId, cursor: Cursor) -> None: ...


def _listing(
    since: Annotated[datetime, Query(alias="from", description=MOMENT, default_factory=datetime.now)],
    to: Annotated[datetime, Query(description=MOMENT, default_factory=datetime.now)],
    site: Annotated[str, Query(description="Of one site only.", default_factory=str, pattern=SITE.pattern)],
    cursor: Cursor,
) -> None: ...


def _replaying(
    request_id: RequestId,
    item: Annotated[int, Query(ge=0, le=LAST_ITEM, description="One of a study.", default_factory=int)],
) -> None: ...


def _shown(summary: str, model: type, *refusals: kinds.Problem) -> dict[str, object]:
    all_refusals = (*LOCKED, *RECORDED, *refusals)
    answers = responses(model, *all_refusals)
    return {"include_in_schema": True, "tags": ["Audit"], "summary": summary, "responses": answers}


RECORD = "/v1/audit/records/{request_id}"
LOST, REFUSED = kinds.UNKNOWN_RECORD, kinds.INPUT_REFUSED

DOORS = (
    Door("GET", RECORD, find_records, "audit:read", _one, _shown("Records of a request", AuditPage, LOST, REFUSED)),
    Door(
        "GET",
        "/v1/audit/records",
        list_records,
        "audit:read",
        _listing,
        _shown("Records by time and site", AuditPage, REFUSED, kinds.UNKNOWN_SITE),
    ),
    Door(
        "POST",
        RECORD + "/replay",
        replay_records,
        "audit:read",
        _replaying,
        _shown("Answer again and compare", Replayed, LOST, REFUSED, kinds.NO_MODEL),
    ),
)
