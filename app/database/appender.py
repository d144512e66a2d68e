"""What the audit writer needs of a database, and the row that it hands over.

An appender holds at most one connection. Any method may raise `DatabaseUnavailable`; after that the connection must
be dropped, because a statement in doubt may still be running behind it.
"""

from typing import NamedTuple, Protocol
from uuid import UUID

STATEMENT_SECONDS = 2.0  # no statement outlives the budget of a record
CONNECT_SECONDS = 2.0


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


class Head(NamedTuple):
    """The last row of a chain. `seq` 0: nothing is written yet."""

    month: str
    chain_id: UUID
    seq: int
    row_hash: bytes


class Appender(Protocol):
    @property
    def connected(self) -> bool: ...

    async def connect(self) -> None: ...

    async def weakness(self) -> str | None:
        """Why a commit on this connection could be lost after it was acknowledged. None: it is durable."""
        ...

    async def append(self, rows: list[AuditRow]) -> None:
        """All rows or none, durable when this returns."""
        ...

    async def head(self, month: str, chain_id: UUID) -> Head | None: ...

    def drop(self) -> None:
        """Let go of the connection at once, whatever runs on it."""
        ...

    async def close(self) -> None: ...
