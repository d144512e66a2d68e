"""Records for people and machines that may read them, in pages of bounded size."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.damage import fault_of
from app.audit.records import UNREADABLE, decode
from app.database.appender import AuditRow
from app.database.records import Filter, Linked, find_page
from app.errors import InvalidCursor

PAGE = 100
LARGEST_PAGE = 1000  # some 2 MB of answer
LEGIBLE = ("request_id", "item", "kind", "at", "principal", "status")


@dataclass(frozen=True, slots=True)
class Page:
    records: list[dict[str, Any]]
    cursor: str | None  # of the next page; None: this is the last one


async def find_records(
    connection: AsyncConnection, wanted: Filter, cursor: str | None = None, limit: int = PAGE
) -> Page:
    """Raises InvalidCursor for a cursor that is not from an earlier page."""
    size = max(1, min(limit, LARGEST_PAGE))
    rows = await find_page(connection, wanted, _position(cursor) if cursor else None, size + 1)
    more = _cursor(rows[size - 1].row) if len(rows) > size else None
    return Page([as_dict(linked) for linked in rows[:size]], more)


def as_dict(linked: Linked) -> dict[str, Any]:
    """What the payload says, whether it is what was hashed, and the row's place in its chain."""
    row, fault = linked.row, fault_of(*linked)
    place = {"month": row.month, "id": str(row.chain_id), "seq": row.seq, "row_hash": row.row_hash.hex()}
    told = {**_said(row), "damaged": fault is not None, "chain": place}
    return told | {"damage": {"kind": fault.damage, "detail": fault.detail}} if fault else told


def _said(row: AuditRow) -> dict[str, Any]:
    """Of a payload that is no record any more, what the other columns say."""
    try:
        decode(row.payload)
        return msgspec.json.decode(row.payload, type=dict[str, Any])
    except UNREADABLE:
        columns = row._asdict()
        return {"record_id": str(row.record_id)} | {name: columns[name] for name in LEGIBLE}


def _cursor(row: AuditRow) -> str:
    """With `at` as it stands there, whatever somebody made of it: a list goes on behind a damaged record."""
    return base64.urlsafe_b64encode(msgspec.json.encode((row.at, row.record_id))).decode().rstrip("=")


def _position(cursor: str) -> tuple[str, UUID]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        at, record_id = msgspec.json.decode(text, type=tuple[str, UUID])
    except (binascii.Error, ValueError) as error:
        raise InvalidCursor from error
    if "\0" in at:  # no text of a database
        raise InvalidCursor
    return at, record_id
