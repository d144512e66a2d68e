"""Signed checkpoints in the database. Rows are only ever added; what they mean is in `app.audit.signed_checkpoint`."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import audit_checkpoints

MAY_READ = (
    "SELECT has_table_privilege('audit_checkpoints', 'SELECT') AND has_table_privilege('audit_records', 'SELECT')"
)
PAGE = 1000


class CheckpointRow(NamedTuple):
    """One row of `audit_checkpoints`, in the order of its columns."""

    writer: UUID
    number: int
    kind: str
    body: bytes  # the bytes that were signed
    signature: bytes


async def add_checkpoints(connection: AsyncConnection, rows: Sequence[CheckpointRow]) -> None:
    """In the transaction of the connection."""
    await connection.execute(insert(audit_checkpoints).inline(), [row._asdict() for row in rows])


async def stream_checkpoints(connection: AsyncConnection, kind: str | None = None) -> AsyncIterator[CheckpointRow]:
    """All of them, those of one writer in the order in which they were signed, or those of one kind."""
    column = audit_checkpoints.c
    query = select(audit_checkpoints).order_by(column.writer, column.number)
    if kind is not None:
        query = query.where(column.kind == kind)
    async with connection.stream(query.execution_options(yield_per=PAGE)) as rows:
        async for row in rows:
            yield CheckpointRow(*row)


async def any_checkpoint(connection: AsyncConnection, kind: str) -> CheckpointRow | None:
    """One of those of this kind."""
    found = await connection.execute(select(audit_checkpoints).where(audit_checkpoints.c.kind == kind).limit(1))
    row = found.first()
    return CheckpointRow(*row) if row else None


async def may_read_audit(connection: AsyncConnection) -> bool:
    """Whether this login may read records and checkpoints. On SQLite everybody may who can open the file."""
    return connection.dialect.name == "sqlite" or bool(await connection.scalar(text(MAY_READ)))
