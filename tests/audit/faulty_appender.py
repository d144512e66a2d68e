"""Appenders whose connection fails at the worst moment. Each wraps a real one."""

from collections.abc import Sequence
from uuid import UUID

from app.database.appender import Appender
from app.database.checkpoints import CheckpointRow
from app.database.records import AuditRow, ChainHead
from app.errors import DatabaseUnavailable


class FaultyAppender:
    """Works like the real one until `fault` is set, then once as a broken connection does."""

    def __init__(self, real: Appender) -> None:
        self.real = real
        self.fault = ""  # "reply lost": committed, but the reply is lost. "in doubt": it may be committed later
        self.in_doubt: list[AuditRow] = []
        self.signed_in_doubt: Sequence[CheckpointRow] = ()

    @property
    def connected(self) -> bool:
        return self.real.connected

    async def connect(self) -> None:
        await self.real.connect()

    async def durability_problem(self) -> str | None:
        return await self.real.durability_problem()

    async def append(self, rows: list[AuditRow], signed: Sequence[CheckpointRow] = ()) -> None:
        fault, self.fault = self.fault, ""
        if fault == "in doubt":
            self.in_doubt, self.signed_in_doubt = rows, signed
        else:
            await self.real.append(rows, signed)
        if fault:
            raise DatabaseUnavailable

    async def head(self, month: str, chain_id: UUID) -> ChainHead | None:
        return await self.real.head(month, chain_id)

    def drop(self) -> None:
        self.real.drop()

    async def close(self) -> None:
        await self.real.close()
