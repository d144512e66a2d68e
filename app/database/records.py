"""Audit records in the database: their rows, the queries on them, and adding rows in a transaction of the caller.

The audit writer adds its rows with an appender (`appender.py`), on a connection of its own.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, case, insert, select, text, tuple_, type_coerce
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.stored_payload import MOST_BYTES, deflate, inflate
from app.database.tables import UNREADABLE_BYTES, BytesColumn, audit_records
from app.errors import DatabaseUnavailable

STREAM_ROWS = 100  # rows in memory while streaming: 0.3 MB of single scores, at most 30 MB of blocks

ROWS = select(audit_records)
STORED = select(*(type_coerce(each, BytesColumn) if each.name == "payload" else each for each in audit_records.c))
BY_TIME = (audit_records.c.at, audit_records.c.record_id)
_before = audit_records.alias("before")
_seq = audit_records.c.seq
LINKED = select(audit_records, _before.c.row_hash).outerjoin_from(
    audit_records,
    _before,
    and_(
        _before.c.month == audit_records.c.month,
        _before.c.chain_id == audit_records.c.chain_id,
        _before.c.seq == case((_seq > 1, _seq - 1)),  # whatever number a damaged row holds, this does not overflow
    ),
)
# One look-up per chain. The index of first rows lists the chains; their last rows are found by the primary key on
# PostgreSQL and in an index of their own on SQLite, which has no LATERAL. Tests check the query plans.
HEADS = {
    "postgresql": (
        "SELECT first.month, first.chain_id, last.seq, last.row_hash FROM audit_records first CROSS JOIN LATERAL "
        "(SELECT seq, row_hash FROM audit_records WHERE month = first.month AND chain_id = first.chain_id "
        "ORDER BY seq DESC LIMIT 1) last "
        "WHERE first.seq = 1 AND first.month >= :since ORDER BY first.month, first.chain_id"
    ),
    "sqlite": (
        "SELECT month, chain_id, "
        "(SELECT seq FROM audit_records WHERE month = first.month AND chain_id = first.chain_id "
        "ORDER BY seq DESC LIMIT 1) AS seq, "
        "(SELECT row_hash FROM audit_records WHERE month = first.month AND chain_id = first.chain_id "
        "ORDER BY seq DESC LIMIT 1) AS row_hash "
        "FROM audit_records first WHERE seq = 1 AND month >= :since ORDER BY month, chain_id"
    ),
}
HEAD_COLUMNS = (audit_records.c.month, audit_records.c.chain_id, audit_records.c.seq, audit_records.c.row_hash)


class AuditRow(NamedTuple):
    """One row of `audit_records`, in the order of its columns."""

    month: str
    chain_id: UUID
    seq: int
    record_id: UUID
    request_id: str | None
    item: int | None
    kind: str
    at: str
    principal: str
    status: int | None
    site: str | None
    version: str | None
    payload: bytes
    row_hash: bytes

    @property
    def position(self) -> "RecordPosition":
        return RecordPosition(self.month, self.chain_id, self.seq)

    @property
    def head(self) -> "ChainHead":
        return ChainHead(self.month, self.chain_id, self.seq, self.row_hash)


def stored_row(row: AuditRow) -> AuditRow:
    """For statements that go to the database driver directly."""
    return row._replace(payload=deflate(row.payload))


class RecordPosition(NamedTuple):
    """The primary key of a record: its chain, and its number in the chain."""

    month: str
    chain_id: UUID
    seq: int


class ChainHead(NamedTuple):
    """The last row of a chain. `seq` 0: nothing is written yet."""

    month: str
    chain_id: UUID
    seq: int
    row_hash: bytes


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records to find; None does not restrict. `start` is included, `end` is not.

    `items` is the first and the last index that the row of an item may have.
    """

    request_id: str | None = None
    start: str | None = None
    end: str | None = None
    site: str | None = None
    items: tuple[int, int] | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        column = audit_records.c
        found = []
        if self.request_id is not None:
            found.append(column.request_id == self.request_id)
        if self.start is not None:
            found.append(column.at >= self.start)
        if self.end is not None:
            found.append(column.at < self.end)
        if self.site is not None:
            found.append(column.site == self.site)
        if self.items is not None:
            found.append(column.item.between(*self.items))
        return found


class LinkedRow(NamedTuple):
    """A row, and the hash of the row before it, from which its own was made. None: no such row, or no hash in it."""

    row: AuditRow
    previous: bytes | None


async def stream_records(
    connection: AsyncConnection, wanted: Filter, start: tuple[str, UUID] | None = None
) -> AsyncGenerator[list[LinkedRow]]:
    """All matching rows in order of time, from (at, record_id) on, page by page, however many."""
    query = LINKED.where(*wanted.conditions()).order_by(*BY_TIME)
    if start is not None:
        query = query.where(tuple_(*BY_TIME) >= tuple_(*start))
    async for page in _pages(connection, query):
        yield [_linked(row) for row in page]


async def stream_chains(connection: AsyncConnection, since_month: str = "") -> AsyncIterator[list[AuditRow]]:
    """Every row, chain by chain, each chain in the order in which it was linked, page by page."""
    column = audit_records.c
    query = STORED.where(column.month >= since_month).order_by(column.month, column.chain_id, column.seq)
    async for page in _pages(connection, query):
        for rows in _inflated(page):
            yield rows


async def stream_month(connection: AsyncConnection, month: str) -> AsyncIterator[list[AuditRow]]:
    """As `stream_chains`, of one month."""
    column = audit_records.c
    async for page in _pages(connection, ROWS.where(column.month == month).order_by(column.chain_id, column.seq)):
        yield [AuditRow(*row) for row in page]


async def chain_heads(connection: AsyncConnection, since_month: str = "") -> list[ChainHead]:
    """The last row of every chain. One look-up per chain, whatever its length."""
    query = text(HEADS[connection.dialect.name]).columns(*HEAD_COLUMNS)
    return [ChainHead(*row) for row in await connection.execute(query, {"since": since_month})]


async def database_name(connection: AsyncConnection) -> str:
    """Distinguishes the databases that may have used the same data folder."""
    if connection.dialect.name == "sqlite":
        return "sqlite"  # a data folder has only one
    return f"postgresql {await connection.scalar(text('SELECT current_database()'))}"


async def record_at(connection: AsyncConnection, position: RecordPosition) -> AuditRow | None:
    column = audit_records.c
    key = (column.month == position.month, column.chain_id == position.chain_id, column.seq == position.seq)
    found = (await connection.execute(ROWS.where(*key))).first()
    return AuditRow(*found) if found else None


async def records_of_kind(connection: AsyncConnection, *kinds: str) -> list[AuditRow]:
    """In the order in which they were made. For kinds with few records: keys and activations."""
    query = ROWS.where(audit_records.c.kind.in_(kinds)).order_by(audit_records.c.record_id)
    return [AuditRow(*row) for row in await connection.execute(query)]


def records_of_commands(kind: str) -> Select[Any]:
    """Of a kind that no request leaves, so that an index finds them: all scores have the id of a request."""
    return ROWS.where(audit_records.c.request_id.is_(None), audit_records.c.kind == kind)


async def add_records(connection: AsyncConnection, rows: Sequence[AuditRow]) -> None:
    """In the transaction of the connection. The writer's role may not read records, so nothing is returned."""
    try:
        await connection.execute(insert(audit_records).inline(), [row._asdict() for row in rows])
    except IntegrityError as error:  # PostgreSQL has no partition for this month
        raise DatabaseUnavailable from error


async def has_records(connection: AsyncConnection) -> bool:
    return (await connection.execute(select(audit_records.c.month).limit(1))).first() is not None


async def _pages(connection: AsyncConnection, query: Select[Any]) -> AsyncIterator[Sequence[Any]]:
    async with connection.stream(query.execution_options(yield_per=STREAM_ROWS)) as rows:
        async for page in rows.partitions():  # one task switch per page, not per row
            yield page


def _inflated(stored: Sequence[Any]) -> Iterator[list[AuditRow]]:
    """In parts: whoever may add records can add a page of payloads of the largest size, each stored in little."""
    rows: list[AuditRow] = []
    size = 0
    for row in starmap(AuditRow, stored):
        rows.append(row._replace(payload=inflate(row.payload)))
        size += len(rows[-1].payload)
        if size >= MOST_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _linked(row: Iterable[Any]) -> LinkedRow:
    *columns, previous = row
    return LinkedRow(AuditRow(*columns), None if previous == UNREADABLE_BYTES else previous)
