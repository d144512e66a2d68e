"""Read the audit. Reading is itself recorded, and nothing is shown before that record is durable."""

from typing import Any

from app.audit.lookup import LARGEST_PAGE, PAGE, Page, find_records
from app.audit.records import NewRecord
from app.database.records import Filter
from app.errors import UnknownRecord
from app.runtime.runtime import Runtime
from app.services.score_measurements import ANSWERED, Caller

Json = dict[str, Any]


async def records_of(runtime: Runtime, caller: Caller, request_id: str, cursor: str | None = None) -> Json:
    """What is on record under a request id, oldest first. A trace id may repeat without end, hence pages here too."""
    page = await find_page(runtime, Filter(request_id=request_id), cursor, LARGEST_PAGE)
    if not page.records:
        raise UnknownRecord
    await record_reading(runtime, caller, {"request_id": request_id, "cursor": cursor}, len(page.records))
    return {"records": page.records, "cursor": page.cursor}


async def page_of_records(runtime: Runtime, caller: Caller, wanted: Filter, cursor: str | None) -> Json:
    page = await find_page(runtime, wanted, cursor, PAGE)
    looked_for = {"from": wanted.start, "to": wanted.end, "site": wanted.site, "cursor": cursor}
    await record_reading(runtime, caller, looked_for, len(page.records))
    return {"records": page.records, "cursor": page.cursor}


async def record_reading(runtime: Runtime, caller: Caller, looked_for: Json, found: int) -> None:
    draft = NewRecord(
        kind="read",
        at=runtime.clock(),
        principal=caller.principal,
        route=caller.route,
        status=ANSWERED,
        request_id=caller.request_id,
        input=looked_for,
        output={"records": found},
    )
    await runtime.writer.write([draft], caller.deadline)


async def find_page(runtime: Runtime, wanted: Filter, cursor: str | None, limit: int) -> Page:
    async with runtime.database.reading() as connection:
        return await find_records(connection, wanted, cursor, limit)
