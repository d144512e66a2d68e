"""Queries on the audit records. Nothing here writes: records are added by an appender alone."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, case, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.appender import AuditRow, Head
from app.database.tables import audit_records
from app.database.tolerant import NO_BYTES

STREAM_ROWS = 1000  # rows in memory while streaming, some 2 MB

ROWS = select(audit_records)
BY_TIME = (audit_records.c.at, audit_records.c.record_id)
_before = audit_records.alias("before")
_place = audit_records.c.seq
LINKED = select(audit_records, _before.c.row_hash).outerjoin_from(
    audit_records,
    _before,
    and_(
        _before.c.month == audit_records.c.month,
        _before.c.chain_id == audit_records.c.chain_id,
        _before.c.seq == case((_place > 1, _place - 1)),  # no number that a damaged row may hold overflows
    ),
)
# One look-up per chain. The index of first rows names the chains; their ends are found by the key on PostgreSQL and in
# an index of their own on SQLite, which has no LATERAL. Tests hold the plans to that.
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


@dataclass(frozen=True, slots=True)
class Filter:
    """What to look for; None does not restrict. `start` is included, `end` is not."""

    request_id: str | None = None
    start: str | None = None
    end: str | None = None
    site: str | None = None

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
        return found


class Linked(NamedTuple):
    """A row, and the hash of the row before it that its own was made from. None: no row, or no hash in it."""

    row: AuditRow
    previous: bytes | None


async def find_page(
    connection: AsyncConnection, wanted: Filter, after: tuple[str, UUID] | None, limit: int
) -> list[Linked]:
    """At most `limit` rows in the order of time, those after (at, record_id)."""
    query = LINKED.where(*wanted.conditions()).order_by(*BY_TIME).limit(limit)
    if after is not None:
        query = query.where(tuple_(*BY_TIME) > tuple_(*after))
    return [_linked(row) for row in await connection.execute(query)]


async def stream(connection: AsyncConnection, wanted: Filter) -> AsyncIterator[list[Linked]]:
    """All of them in the order of time, page by page, however many."""
    async for page in _pages(connection, LINKED.where(*wanted.conditions()).order_by(*BY_TIME)):
        yield [_linked(row) for row in page]


async def stream_chains(connection: AsyncConnection, since_month: str = "") -> AsyncIterator[list[AuditRow]]:
    """Every row, chain by chain, in the order in which each chain was linked, page by page."""
    column = audit_records.c
    query = ROWS.where(column.month >= since_month).order_by(column.month, column.chain_id, column.seq)
    async for page in _pages(connection, query):
        yield [AuditRow(*row) for row in page]


async def heads(connection: AsyncConnection, since_month: str = "") -> list[Head]:
    """Where every chain ends now. One look-up per chain, whatever its length."""
    query = text(HEADS[connection.dialect.name]).columns(*HEAD_COLUMNS)
    return [Head(*row) for row in await connection.execute(query, {"since": since_month})]


async def database_name(connection: AsyncConnection) -> str:
    """Tells the databases apart that may have used one data folder."""
    if connection.dialect.name == "sqlite":
        return "sqlite"  # a folder has one
    return f"postgresql {await connection.scalar(text('SELECT current_database()'))}"


async def has_records(connection: AsyncConnection) -> bool:
    return (await connection.execute(select(audit_records.c.month).limit(1))).first() is not None


async def _pages(connection: AsyncConnection, query: Select[Any]) -> AsyncIterator[Sequence[Any]]:
    async with connection.stream(query.execution_options(yield_per=STREAM_ROWS)) as rows:
        async for page in rows.partitions():  # one switch of tasks per page, not per row
            yield page


def _linked(row: Iterable[Any]) -> Linked:
    *columns, previous = row
    return Linked(AuditRow(*columns), None if previous == NO_BYTES else previous)
