"""Find audit records, page by page, each checked before it is shown."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from uuid import UUID

import msgspec

from app.audit.blocks import MAX_ITEMS, block_id, expand
from app.audit.chain import check_row
from app.audit.encryption import DataKeys, FoundKeys, named_keys
from app.audit.records import UNREADABLE, decode
from app.database.engine import Connection
from app.database.records import AuditRow, Filter, LinkedRow, stream_records
from app.errors import InvalidCursor

Json = dict[str, Any]

PAGE = 100
MAX_PAGE = 1000  # some 2 MB of JSON
ENCRYPTED = b'"encrypted":'
NO_KEYS = FoundKeys({})
READABLE_COLUMNS = ("request_id", "item", "kind", "at", "principal", "status")


@dataclass(frozen=True, slots=True)
class Page:
    records: list[Json]
    cursor: str | None  # of the next page; None: this is the last page


async def find_records(
    connection: Connection,
    wanted: Filter,
    cursor: str | None = None,
    limit: int = PAGE,
    item: int | None = None,
    data_keys: DataKeys | None = None,
) -> Page:
    """With `item` only the records of that index. Raises InvalidCursor if the cursor is not from an earlier page."""
    size, after = max(1, min(limit, MAX_PAGE)), _after(cursor) if cursor else None
    if item is not None:
        wanted = replace(wanted, items=(item - MAX_ITEMS + 1, item))
    start = (after[0], block_id(after[1])) if after else None  # the page may have ended within a block
    found: list[tuple[tuple[str, UUID], Json]] = []
    async with aclosing(stream_records(connection, wanted, start)) as pages:
        async for page in pages:
            keys = await keys_for(connection, page, data_keys)
            for linked in page:
                records = zip(_positions(linked.row), as_dicts(linked, keys), strict=False)
                found += [
                    one for one in records if item in (None, one[1]["item"]) and (after is None or one[0] > after)
                ]
            if len(found) > size:
                break
    more = _cursor(*found[size - 1][0]) if len(found) > size else None
    return Page([record for _, record in found[:size]], more)


async def keys_for(connection: Connection, page: Sequence[LinkedRow], data_keys: DataKeys | None) -> FoundKeys:
    """That decrypt these rows."""
    if data_keys is None:
        return NO_KEYS
    encrypted = [_content(linked.row) for linked in page if ENCRYPTED in linked.row.payload]
    return await data_keys.find(connection, set[UUID]().union(*map(named_keys, encrypted)))


def as_dicts(linked: LinkedRow, keys: FoundKeys = NO_KEYS) -> list[Json]:
    """The payload, or that of each item of a block; whether the row is what was hashed, and its position."""
    row, damage = linked.row, check_row(*linked)
    chain = {"month": row.month, "id": str(row.chain_id), "seq": row.seq, "row_hash": row.row_hash.hex()}
    judged: Json = {"damaged": damage is not None, "chain": chain}
    if damage:
        judged["damage"] = damage._asdict()
    return [keys.decrypt(record) | judged for record in expand(keys.decrypt(_content(row)))]


def _content(row: AuditRow) -> Json:
    """The payload, or the other columns if it cannot be decoded."""
    try:
        decode(row.payload)
        return msgspec.json.decode(row.payload, type=dict[str, Any])
    except UNREADABLE:
        columns = row._asdict()
        return {"record_id": str(row.record_id)} | {name: columns[name] for name in READABLE_COLUMNS}


def _positions(row: AuditRow) -> Iterator[tuple[str, UUID]]:
    """Of the records of a row in the order of time: as stored, even if somebody changed them."""
    return ((row.at, UUID(int=number)) for number in count(row.record_id.int))


def _cursor(at: str, record_id: UUID) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((at, record_id))).decode().rstrip("=")


def _after(cursor: str) -> tuple[str, UUID]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        at, record_id = msgspec.json.decode(text, type=tuple[str, UUID])
    except (binascii.Error, ValueError) as error:
        raise InvalidCursor from error
    if "\0" in at:  # PostgreSQL cannot store it
        raise InvalidCursor
    return at, record_id
