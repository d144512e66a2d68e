"""What the audit writer needs of a database: append rows, read the head of a chain, and commits that are durable.

An appender holds at most one connection. Any method may raise `DatabaseUnavailable`; the connection must be dropped
then, because a statement whose outcome is unknown may still be running on it.

Durability is checked on every new connection of the audit writer and once a minute after that: an operator, or anyone
who may alter the database or the role, can change these settings at any time, and a reload is enough.

Accepted values of `synchronous_commit`: `on` and `remote_apply` flush the record to this disk and, where synchronous
standbys are configured, to theirs. `local` flushes it to this disk only, and `remote_write` does not wait for the
standby's disk: both equal `on` without synchronous standbys, and both are rejected with them, because then the
operator asked for records that survive the loss of this machine.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.checkpoints import CheckpointRow
from app.database.records import AuditRow, ChainHead
from app.errors import NotDurable

STATEMENT_SECONDS = 2.0  # no statement outlives the time budget of a record
CONNECT_SECONDS = 2.0

# A crash empties unlogged tables.
POSTGRES_SETTINGS = """
    SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
        current_setting('synchronous_commit') AS synchronous_commit,
        current_setting('synchronous_standby_names') AS synchronous_standby_names,
        EXISTS (
            SELECT FROM pg_class WHERE relpersistence <> 'p' AND (
                oid IN (to_regclass('audit_records'), to_regclass('audit_checkpoints'), to_regclass('activations'),
                    to_regclass('api_keys'), to_regclass('data_keys'), to_regclass('idempotent_answers'))
                OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('audit_records')))
        ) AS has_unlogged_tables
"""
WAITS_FOR_EVERY_DISK = ("on", "remote_apply")
WAITS_FOR_THIS_DISK = ("local", "remote_write")
SQLITE_SETTINGS = ("PRAGMA synchronous", "PRAGMA journal_mode")
SQLITE_FULL = 2  # 3, EXTRA, is stricter; NORMAL loses the last commits when the power fails
SQLITE_JOURNAL = "wal"


class Appender(Protocol):
    @property
    def connected(self) -> bool: ...

    async def connect(self) -> None: ...

    async def durability_problem(self) -> str | None:
        """Why a commit on this connection could be lost after it was acknowledged. None: it is durable."""
        ...

    async def append(self, rows: list[AuditRow], signed: Sequence[CheckpointRow] = ()) -> None:
        """All rows and checkpoints or none, durable when this returns."""
        ...

    async def head(self, month: str, chain_id: UUID) -> ChainHead | None: ...

    def drop(self) -> None:
        """Abandon the connection at once, whatever runs on it."""
        ...

    async def close(self) -> None: ...


class PostgresSettings(NamedTuple):
    """A row of POSTGRES_SETTINGS."""

    fsync: str
    full_page_writes: str
    synchronous_commit: str
    synchronous_standby_names: str
    has_unlogged_tables: bool


async def check_durability(connection: AsyncConnection) -> None:
    """Raises NotDurable if a commit of this connection could be lost after it was acknowledged."""
    await connection.run_sync(check_durability_sync)


def check_durability_sync(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        problem = postgres_problem(PostgresSettings(*connection.execute(text(POSTGRES_SETTINGS)).one()))
    else:
        problem = sqlite_problem(*(connection.execute(text(pragma)).scalar_one() for pragma in SQLITE_SETTINGS))
    if problem:
        raise NotDurable(problem)


def postgres_problem(found: PostgresSettings) -> str | None:
    """Why acknowledged records could be lost, in one sentence. None: they are durable."""
    for setting, value in (("fsync", found.fsync), ("full_page_writes", found.full_page_writes)):
        if value != "on":
            return f"PostgreSQL runs with {setting}={value} and may lose records: set it to on."
    commit, standbys = found.synchronous_commit, found.synchronous_standby_names.strip()
    if commit in WAITS_FOR_THIS_DISK and standbys:
        return f"PostgreSQL runs with synchronous_commit={commit} although it has synchronous standbys: set it to on."
    if commit not in WAITS_FOR_EVERY_DISK + WAITS_FOR_THIS_DISK:
        return f"PostgreSQL runs with synchronous_commit={commit} and may lose records: set it to on."
    if found.has_unlogged_tables:
        return "A table of records, keys, activations or answers, or a partition, is UNLOGGED: a crash would empty it."
    return None


def sqlite_problem(synchronous: int, journal_mode: str) -> str | None:
    if synchronous < SQLITE_FULL:
        return f"SQLite runs with synchronous={synchronous} and may lose records: it must be FULL."
    if journal_mode != SQLITE_JOURNAL:
        return f"SQLite runs with journal_mode={journal_mode}: it must be WAL."
    return None
