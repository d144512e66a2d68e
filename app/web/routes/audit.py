"""The audit: look records up, and recompute recorded scores. Reading is itself recorded."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Security
from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from app.clock import parse_iso_time, timestamp
from app.database.records import Filter
from app.domain.scopes import Scope
from app.errors import UnknownRecord, UnknownSite
from app.runtime.credentials import Caller
from app.schemas import problem as problems
from app.schemas.lookups import AuditPage, Replay
from app.services import audit_records
from app.services.replay import replay
from app.store.registry import SITE, is_site
from app.web.middleware import REQUEST_ID
from app.web.openapi import PROTECTED, RECORDED, problem_responses
from app.web.route import ApiRoute, json_response, whole_number
from app.web.security import RuntimeDep, current_caller

RECORDS = "/v1/audit/records"
LAST_ITEM = 2**31 - 1  # a stream of items has no other limit
ONE_ITEM = "Only this measurement of a study, or this item of a batch, counted from 0."
TIME = "ISO 8601, in UTC unless it states an offset."


async def recorded_request_id(
    request_id: Annotated[str, Path(description="The `request_id` of the response.", examples=["echo-lab-7.2026"])],
) -> str:
    """An id that no request can have has no record."""
    if not REQUEST_ID.fullmatch(request_id.encode("utf-8", "replace")):
        raise UnknownRecord
    return request_id


def _parse_time(text: object) -> datetime:
    try:
        return parse_iso_time(str(text))
    except ValueError:
        raise PydanticCustomError("wrong_type", "must be a time in ISO 8601, such as 2026-11-15T10:30:00Z.") from None


def _parse_cursor(text: object) -> str:
    if not text:
        raise PydanticCustomError("wrong_type", "must come from an earlier page of this list.")
    return str(text)


AuditReader = Annotated[Caller, Security(current_caller, scopes=[Scope.AUDIT_READ])]
RecordedRequestId = Annotated[str, Depends(recorded_request_id)]
Time = Annotated[datetime, BeforeValidator(_parse_time)] | SkipJsonSchema[None]
Item = Annotated[int, Field(ge=0, le=LAST_ITEM), whole_number(0, LAST_ITEM)] | SkipJsonSchema[None]
Cursor = Annotated[
    Annotated[str, BeforeValidator(_parse_cursor)] | SkipJsonSchema[None],
    Query(description="The `cursor` of the previous page.", min_length=1),
]

router = APIRouter(tags=["Audit"], route_class=ApiRoute)


@router.get(
    RECORDS + "/{request_id}",
    operation_id="findAuditRecords",
    summary="Records of a request",
    response_model=AuditPage,
    response_description="The records, oldest first.",
    responses=problem_responses(*PROTECTED, *RECORDED, problems.UNKNOWN_RECORD),
)
async def find_audit_records(
    runtime: RuntimeDep,
    caller: AuditReader,
    request_id: RecordedRequestId,
    item: Annotated[Item, Query(description=ONE_ITEM)] = None,
    cursor: Cursor = None,
) -> Response:
    """Returns the records of one request id, oldest first, in pages. Every item of a batch has a record of its own."""
    return json_response(await audit_records.get_records(runtime, caller, request_id, item, cursor))


@router.get(
    RECORDS,
    operation_id="listAuditRecords",
    summary="Records by time and site",
    response_model=AuditPage,
    response_description="The records, oldest first.",
    responses=problem_responses(*PROTECTED, *RECORDED, problems.UNKNOWN_SITE),
)
async def list_audit_records(
    runtime: RuntimeDep,
    caller: AuditReader,
    start: Annotated[Time, Query(alias="from", description=f"The first moment, included. {TIME}")] = None,
    end: Annotated[Time, Query(alias="to", description=f"The last moment, excluded. {TIME}")] = None,
    site: Annotated[
        str | SkipJsonSchema[None],
        Query(description="Only records of this site.", json_schema_extra={"pattern": f"^{SITE.pattern}$"}),
    ] = None,
    cursor: Cursor = None,
) -> Response:
    """Returns records in order of time, in pages."""
    if site is not None and not is_site(site):
        raise UnknownSite(site)
    wanted = Filter(start=timestamp(start) if start else None, end=timestamp(end) if end else None, site=site)
    return json_response(await audit_records.list_records(runtime, caller, wanted, cursor))


@router.post(
    RECORDS + "/{request_id}/replay",
    operation_id="replayAuditRecords",
    summary="Recompute and compare",
    response_model=Replay,
    response_description="The comparison.",
    responses=problem_responses(*PROTECTED, *RECORDED, problems.UNKNOWN_RECORD, problems.ERASED, problems.NO_MODEL),
)
async def replay_audit_records(
    runtime: RuntimeDep,
    caller: AuditReader,
    request_id: RecordedRequestId,
    item: Annotated[Item, Query(description=ONE_ITEM)] = None,
) -> Response:
    """Recomputes the recorded scores with the recorded version of the model and compares every number."""
    return json_response(await replay(runtime, caller, request_id, item))
