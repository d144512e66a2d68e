"""Audit records by their place, and records that are committed together with the change that they tell of."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.appender import AuditRow
from app.database.tables import audit_records
from app.errors import DatabaseUnavailable


class Place(NamedTuple):
    month: str
    chain_id: UUID
    seq: int


async def record_at(connection: AsyncConnection, month: str, chain_id: UUID, seq: int) -> AuditRow | None:
    column = audit_records.c
    query = select(audit_records).where(column.month == month, column.chain_id == chain_id, column.seq == seq)
    found = (await connection.execute(query)).first()
    return AuditRow(*found) if found else None


async def records_of_kind(connection: AsyncConnection, *kinds: str) -> list[AuditRow]:
    """In the order in which they were made. For kinds that are few: keys and activations."""
    query = select(audit_records).where(audit_records.c.kind.in_(kinds)).order_by(audit_records.c.record_id)
    return [AuditRow(*row) for row in await connection.execute(query)]


async def add_records(connection: AsyncConnection, rows: Sequence[AuditRow]) -> None:
    """In the transaction of the connection. The writer's role may not read records, so nothing is asked back."""
    try:
        await connection.execute(insert(audit_records).inline(), [row._asdict() for row in rows])
    except IntegrityError as error:  # PostgreSQL has no partition for this month
        raise DatabaseUnavailable from error
