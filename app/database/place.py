"""One audit record by its place."""

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.appender import AuditRow
from app.database.tables import audit_records


async def record_at(connection: AsyncConnection, month: str, chain_id: UUID, seq: int) -> AuditRow | None:
    column = audit_records.c
    query = select(audit_records).where(column.month == month, column.chain_id == chain_id, column.seq == seq)
    found = (await connection.execute(query)).first()
    return AuditRow(*found) if found else None
