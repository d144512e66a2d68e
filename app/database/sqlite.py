"""The embedded database: one private file, write-ahead log, every commit synchronised to the disk.

The audit writer's statements run in one thread of their own. A statement that outlives its time cannot be stopped
for certain, but whatever follows waits behind it in the same thread, so two never run at once.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import UUID

from app.database.appender import STATEMENT_SECONDS, AuditRow, Head
from app.database.durability import sqlite_weakness
from app.errors import DatabaseUnavailable

FILE_NAME = "normalcy.sqlite3"
BUSY_SECONDS = 1.5  # below STATEMENT_SECONDS, so that a locked file is reported by SQLite itself
PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # NORMAL would lose acknowledged records on power loss
    f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}",
    "PRAGMA recursive_triggers = ON",  # REPLACE then fires the triggers against deletion too
    "PRAGMA foreign_keys = ON",  # no activation without its record
)
INSERT = f"INSERT INTO audit_records VALUES ({', '.join('?' * len(AuditRow._fields))})"  # noqa: S608 - no input in it
HEAD = "SELECT seq, row_hash FROM audit_records WHERE month = ? AND chain_id = ? ORDER BY seq DESC LIMIT 1"

T = TypeVar("T")


class Executes(Protocol):
    def execute(self, statement: str, /) -> object: ...


def create_private_file(path: Path) -> None:
    """Readable by this user alone from the first moment; SQLite gives its side files the same rights."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def prepare(connection: Executes) -> None:
    for pragma in PRAGMAS:
        connection.execute(pragma)


class SqliteAppender:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="audit-sqlite")
        self._connection: sqlite3.Connection | None = None  # of the thread
        self._connected = False

    @property
    def connected(self) -> bool:
        return self._connected

    async def connect(self) -> None:
        await self._in_thread(self._reopen)
        self._connected = True

    async def weakness(self) -> str | None:
        return await self._in_thread(self._weakness)

    async def append(self, rows: list[AuditRow]) -> None:
        await self._in_thread(lambda: self._insert(rows))

    async def head(self, month: str, chain_id: UUID) -> Head | None:
        found = await self._in_thread(lambda: self._open().execute(HEAD, (month, chain_id.hex)).fetchone())
        return Head(month, chain_id, *found) if found else None

    def drop(self) -> None:
        self._connected = False

    async def close(self) -> None:
        self._connected = False
        with suppress(DatabaseUnavailable):
            await self._in_thread(self._forget)
        self._thread.shutdown(wait=False)  # a disk that hangs must not hang the event loop

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(STATEMENT_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (sqlite3.Error, OSError) as error:  # TimeoutError is an OSError
            raise DatabaseUnavailable from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise sqlite3.OperationalError("not connected")
        return self._connection

    def _reopen(self) -> None:
        self._forget()
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._connection = connection
        prepare(connection)

    def _weakness(self) -> str | None:
        [synchronous], [journal_mode] = (
            self._open().execute(pragma).fetchone() for pragma in ("PRAGMA synchronous", "PRAGMA journal_mode")
        )
        return sqlite_weakness(synchronous, journal_mode)

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _insert(self, rows: list[AuditRow]) -> None:
        connection = self._open()
        with connection:  # commits at the end, or rolls back
            connection.execute("BEGIN IMMEDIATE")  # a read that turns into a write would not wait for the lock
            connection.executemany(INSERT, map(_parameters, rows))


def _parameters(row: AuditRow) -> tuple[object, ...]:
    month, chain_id, seq, record_id, *rest = row
    return (month, chain_id.hex, seq, record_id.hex, *rest)
