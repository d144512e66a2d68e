"""Queries on the audit records. Nothing here writes: records are added by an appender alone."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.appender import AuditRow, Head
from app.database.tables import audit_records

STREAM_ROWS = 1000  # rows in memory while streaming, some 2 MB

ROWS = select(audit_records)
BY_TIME = (audit_records.c.at, audit_records.c.record_id)
HEADS = text(
    "SELECT last.month, last.chain_id, last.seq, last.row_hash "
    "FROM audit_records first JOIN audit_records last ON last.month = first.month AND last.chain_id = first.chain_id "
    "AND last.seq = (SELECT max(seq) FROM audit_records WHERE month = first.month AND chain_id = first.chain_id) "
    "WHERE first.seq = 1 AND first.month >= :since ORDER BY last.month, last.chain_id"
).columns(audit_records.c.month, audit_records.c.chain_id, audit_records.c.seq, audit_records.c.row_hash)


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


async def find_page(
    connection: AsyncConnection, wanted: Filter, after: tuple[str, UUID] | None, limit: int
) -> list[AuditRow]:
    """At most `limit` rows in the order of time, those after (at, record_id)."""
    query = ROWS.where(*wanted.conditions()).order_by(*BY_TIME).limit(limit)
    if after is not None:
        query = query.where(tuple_(*BY_TIME) > tuple_(*after))
    return [AuditRow(*row) for row in await connection.execute(query)]


def stream(connection: AsyncConnection, wanted: Filter) -> AsyncIterator[list[AuditRow]]:
    """All of them in the order of time, page by page, however many."""
    return _pages(connection, ROWS.where(*wanted.conditions()).order_by(*BY_TIME))


def stream_chains(connection: AsyncConnection, since_month: str = "") -> AsyncIterator[list[AuditRow]]:
    """Every row, chain by chain, in the order in which each chain was linked, page by page."""
    column = audit_records.c
    query = ROWS.where(column.month >= since_month).order_by(column.month, column.chain_id, column.seq)
    return _pages(connection, query)


async def heads(connection: AsyncConnection, since_month: str = "") -> list[Head]:
    """Where every chain ends now. One look-up per chain, whatever its length."""
    return [Head(*row) for row in await connection.execute(HEADS, {"since": since_month})]


async def _pages(connection: AsyncConnection, query: Select[Any]) -> AsyncIterator[list[AuditRow]]:
    async with connection.stream(query.execution_options(yield_per=STREAM_ROWS)) as rows:
        async for page in rows.partitions():  # one switch of tasks per page, not per row
            yield [AuditRow(*row) for row in page]
