"""PostgreSQL. The audit writer uses asyncpg directly: one statement, one round trip, one commit per group."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

from app.database.appender import (
    CONNECT_SECONDS,
    POSTGRES_SETTINGS,
    STATEMENT_SECONDS,
    PostgresSettings,
    postgres_problem,
)
from app.database.checkpoints import CheckpointRow
from app.database.records import AuditRow, ChainHead, stored_row
from app.errors import DatabaseUnavailable

CONNECTION_ERRORS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)  # TimeoutError is an OSError
ARRAYS = (
    "$1::text[], $2::uuid[], $3::bigint[], $4::uuid[], $5::text[], $6::integer[], $7::text[], $8::text[], $9::text[], "
    "$10::integer[], $11::text[], $12::text[], $13::bytea[], $14::bytea[]"
)
# Alone in its transaction, so the commit is part of the same round trip.
INSERT = f"INSERT INTO audit_records ({', '.join(AuditRow._fields)}) SELECT * FROM unnest({ARRAYS})"  # noqa: S608
# In the same statement, so that a chain is never without the checkpoint that was signed with its rows.
SIGNED_INSERT = (
    "WITH signed AS (INSERT INTO audit_checkpoints (writer, number, kind, body, signature) "  # noqa: S608 - no input
    f"SELECT * FROM unnest($15::uuid[], $16::bigint[], $17::text[], $18::bytea[], $19::bytea[])) {INSERT}"
)
# A function, because the writer's role may add records and may not read them.
HEAD = "SELECT seq, row_hash FROM audit_head($1, $2)"


async def connect(dsn: str, statement_seconds: float | None) -> asyncpg.Connection:
    """A connection whose statements have two timeouts: the server's, and ours in case the server hangs.

    It asks for durable commits itself: what is set here takes precedence over ALTER DATABASE and ALTER ROLE.
    """
    limit = "0" if statement_seconds is None else str(int(statement_seconds * 1000))
    return await asyncpg.connect(
        dsn,
        timeout=CONNECT_SECONDS,
        command_timeout=statement_seconds,
        server_settings={
            "statement_timeout": limit,
            "application_name": "normalcy",
            "synchronous_commit": "on",
            "jit": "off",  # compiling a plan takes longer than any of our statements
        },
    )


class PostgresAppender:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: asyncpg.Connection | None = None

    @property
    def connected(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    async def connect(self) -> None:
        self.drop()
        try:
            self._connection = await connect(self._dsn, STATEMENT_SECONDS)
        except CONNECTION_ERRORS as error:
            raise DatabaseUnavailable from error

    async def durability_problem(self) -> str | None:
        try:
            found = await self._open().fetchrow(POSTGRES_SETTINGS)
        except CONNECTION_ERRORS as error:
            raise DatabaseUnavailable from error
        return postgres_problem(PostgresSettings(*found))

    async def append(self, rows: list[AuditRow], signed: Sequence[CheckpointRow] = ()) -> None:
        columns = list(zip(*map(stored_row, rows), strict=True)) or [()] * len(AuditRow._fields)
        try:
            if signed:
                done = await self._open().execute(SIGNED_INSERT, *columns, *zip(*signed, strict=True))
            else:
                done = await self._open().execute(INSERT, *columns)
            if done != f"INSERT 0 {len(rows)}":  # a trigger can leave rows out
                raise asyncpg.InterfaceError("rows were not inserted")
        except CONNECTION_ERRORS as error:
            raise DatabaseUnavailable from error

    async def head(self, month: str, chain_id: UUID) -> ChainHead | None:
        try:
            found = await self._open().fetchrow(HEAD, month, chain_id)
        except CONNECTION_ERRORS as error:
            raise DatabaseUnavailable from error
        return ChainHead(month, chain_id, found["seq"], found["row_hash"]) if found else None

    def drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.close(timeout=CONNECT_SECONDS)
            except CONNECTION_ERRORS:
                connection.terminate()

    def _open(self) -> asyncpg.Connection:
        if self._connection is None:
            raise DatabaseUnavailable
        return self._connection
