"""Find audit records, page by page, each checked before it is shown."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from app.audit.chain import check_row
from app.audit.records import UNREADABLE, decode
from app.database.engine import Connection
from app.database.records import AuditRow, Filter, LinkedRow, find_page
from app.errors import InvalidCursor

PAGE = 100
LARGEST_PAGE = 1000  # some 2 MB of JSON
READABLE_COLUMNS = ("request_id", "item", "kind", "at", "principal", "status")


@dataclass(frozen=True, slots=True)
class Page:
    records: list[dict[str, Any]]
    cursor: str | None  # of the next page; None: this is the last page


async def find_records(connection: Connection, wanted: Filter, cursor: str | None = None, limit: int = PAGE) -> Page:
    """Raises InvalidCursor for a cursor that is not from an earlier page."""
    size = max(1, min(limit, LARGEST_PAGE))
    rows = await find_page(connection, wanted, _after(cursor) if cursor else None, size + 1)
    more = _cursor(rows[size - 1].row) if len(rows) > size else None
    return Page([as_dict(linked) for linked in rows[:size]], more)


def as_dict(linked: LinkedRow) -> dict[str, Any]:
    """The payload, whether the row is what was hashed, and its position in its chain."""
    row, damage = linked.row, check_row(*linked)
    chain = {"month": row.month, "id": str(row.chain_id), "seq": row.seq, "row_hash": row.row_hash.hex()}
    record = {**_content(row), "damaged": damage is not None, "chain": chain}
    return record | {"damage": damage._asdict()} if damage else record


def _content(row: AuditRow) -> dict[str, Any]:
    """The payload, or the other columns if it cannot be decoded."""
    try:
        decode(row.payload)
        return msgspec.json.decode(row.payload, type=dict[str, Any])
    except UNREADABLE:
        columns = row._asdict()
        return {"record_id": str(row.record_id)} | {name: columns[name] for name in READABLE_COLUMNS}


def _cursor(row: AuditRow) -> str:
    """With `at` as stored, even if somebody changed it, so that the list continues after a damaged record."""
    return base64.urlsafe_b64encode(msgspec.json.encode((row.at, row.record_id))).decode().rstrip("=")


def _after(cursor: str) -> tuple[str, UUID]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        at, record_id = msgspec.json.decode(text, type=tuple[str, UUID])
    except (binascii.Error, ValueError) as error:
        raise InvalidCursor from error
    if "\0" in at:  # PostgreSQL cannot store it
        raise InvalidCursor
    return at, record_id
