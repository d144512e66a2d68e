"""Read the audit. Reading is itself recorded, and nothing is shown before that record is durable."""

from typing import Any

from app.audit.lookup import LARGEST_PAGE, PAGE, Page, find_records
from app.audit.records import Draft
from app.database.records import Filter
from app.errors import UnknownRecord
from app.services.answer import ANSWERED, Caller
from app.services.running import RunningService

Json = dict[str, Any]


async def records_of(service: RunningService, caller: Caller, request_id: str, cursor: str | None = None) -> Json:
    """What is on record under a request id, oldest first. A trace id may repeat without end, hence pages here too."""
    page = await find_page(service, Filter(request_id=request_id), cursor, LARGEST_PAGE)
    if not page.records:
        raise UnknownRecord
    await record_reading(service, caller, {"request_id": request_id, "cursor": cursor}, len(page.records))
    return {"records": page.records, "cursor": page.cursor}


async def page_of_records(service: RunningService, caller: Caller, wanted: Filter, cursor: str | None) -> Json:
    page = await find_page(service, wanted, cursor, PAGE)
    looked_for = {"from": wanted.start, "to": wanted.end, "site": wanted.site, "cursor": cursor}
    await record_reading(service, caller, looked_for, len(page.records))
    return {"records": page.records, "cursor": page.cursor}


async def record_reading(service: RunningService, caller: Caller, looked_for: Json, found: int) -> None:
    draft = Draft(
        kind="read",
        at=service.clock(),
        principal=caller.principal,
        route=caller.route,
        status=ANSWERED,
        request_id=caller.request_id,
        input=looked_for,
        output={"records": found},
    )
    await service.writer.write([draft], caller.deadline)


async def find_page(service: RunningService, wanted: Filter, cursor: str | None, limit: int) -> Page:
    async with service.database.reading() as connection:
        return await find_records(connection, wanted, cursor, limit)
