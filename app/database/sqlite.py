"""SQLite: one private file on a local disk, write-ahead log, every commit flushed to the disk, one serving process.

The audit writer's statements run in one thread of their own. A statement that exceeds its timeout cannot be stopped
for certain, but whatever follows waits behind it in the same thread, so two never run at once.
"""

import asyncio
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from app.database.appender import SQLITE_SETTINGS, STATEMENT_SECONDS, sqlite_problem
from app.database.checkpoints import CheckpointRow
from app.database.records import AuditRow, ChainHead, stored_row
from app.errors import AlreadyServing, DatabaseNotReady, DatabaseUnavailable

FILE_NAME = "normalcy.sqlite3"
LOG_PAGES = 1000  # in the write-ahead log when a commit moves them into the file itself
MOVE_SECONDS = 1.0  # least time between two moves at idle moments: fewer than one request in a hundred waits for one
BUSY_SECONDS = 1.5  # below STATEMENT_SECONDS, so that a locked file is reported by SQLite itself
PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # NORMAL would lose acknowledged records on power loss
    f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}",
    "PRAGMA recursive_triggers = ON",  # REPLACE then fires the delete triggers too
    "PRAGMA foreign_keys = ON",  # no activation without its record
    "PRAGMA secure_delete = ON",  # a data key that is destroyed, or an answer that has expired, leaves no bytes behind
    "PRAGMA wal_autocheckpoint = 0",  # of a process only the audit writer's connection moves the log, see `_move_log`
)
ROW = f"({', '.join('?' * len(AuditRow._fields))})"
INSERT_SIGNED = "INSERT INTO audit_checkpoints VALUES (?, ?, ?, ?, ?)"
HEAD = "SELECT seq, row_hash FROM audit_records WHERE month = ? AND chain_id = ? ORDER BY seq DESC LIMIT 1"
MOUNTS = Path("/proc/self/mounts")  # Linux; elsewhere nothing is known and nothing is refused
NETWORK_FILESYSTEMS = ("nfs", "cifs", "smb", "sshfs", "glusterfs", "ceph", "lustre", "afs")

T = TypeVar("T")


class Executes(Protocol):
    def execute(self, statement: str, /) -> object: ...


def create_private_file(path: Path) -> None:
    """Readable by this user only, from the start; SQLite gives its other files the same permissions."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def set_pragmas(connection: Executes) -> None:
    for pragma in PRAGMAS:
        connection.execute(pragma)


def empty_log(path: Path) -> bool:
    """Move everything from the write-ahead log to the file. False: somebody is reading or writing."""
    ends = time.monotonic() + BUSY_SECONDS
    with (
        closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)) as connection,
        suppress(sqlite3.Error),
    ):
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > ends:
                return False
            time.sleep(0.01)  # for a move by another process SQLite does not wait by itself
        return True
    return False


@contextmanager
def serve_lock(database_file: Path) -> Iterator[None]:
    """One serving process per file. The system releases the lock however the process dies: nothing to clean up."""
    database_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock_file = database_file.with_suffix(".serve.lock")
    handle = os.open(lock_file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyServing(str(database_file)) from error
        yield
    finally:
        os.close(handle)


def check_local_folder(folder: Path, mounts: Path = MOUNTS) -> None:
    """SQLite's locks and shared memory do not work over a network. Raises DatabaseNotReady."""
    filesystem = _filesystem(folder.resolve(), mounts.read_text()) if mounts.exists() else ""
    if any(name in filesystem for name in NETWORK_FILESYSTEMS):
        raise DatabaseNotReady(
            f"NORMALCY_DATA_DIR is on a network file system ({filesystem}), where an SQLite database is not safe: "
            "choose a local folder, or set NORMALCY_DATABASE_URL."
        )


def _filesystem(folder: Path, mounts: str) -> str:
    """The type of the innermost mount that holds the folder. A space in a path is written \\040 there."""
    lines = [line.split() for line in mounts.splitlines()]
    points = [(Path(line[1].replace("\\040", " ")), line[2]) for line in lines if len(line) > 2]
    holding = [(len(point.parts), kind) for point, kind in points if folder.is_relative_to(point)]
    return max(holding, key=lambda found: found[0], default=(0, ""))[1]


class Job(NamedTuple):
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]

    def run(self) -> None:
        if self.done.done():  # given up before it began
            return
        try:
            outcome = self.work()
        except Exception as error:  # noqa: BLE001 - it belongs to the task that waits
            outcome = error
        with suppress(RuntimeError):  # the event loop was closed meanwhile
            self.loop.call_soon_threadsafe(self.settle, outcome)

    def settle(self, outcome: object) -> None:
        if self.done.done():
            return
        if isinstance(outcome, Exception):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)


class OneThread:
    """Runs one job after the other. An executor takes twice as long for the way there and back, and a request that is
    alone waits for both."""

    def __init__(self, name: str, when_idle: Callable[[], None] = lambda: None) -> None:
        """`when_idle` runs in the thread after a job that no other one waits behind. It must not raise."""
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._when_idle = when_idle
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """What `work` returns or raises. Raises TimeoutError after that time; work that has begun goes on."""
        loop = asyncio.get_running_loop()
        job = Job(work, loop, loop.create_future())
        timer = loop.call_later(seconds, job.settle, TimeoutError())
        self._jobs.put(job)
        try:
            result: T = await job.done
        finally:
            timer.cancel()
        return result

    def close(self) -> None:
        """Ends the thread after its jobs. Does not wait: a disk that hangs must not block the event loop."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()
            del job  # else its records would stay in memory until the next one
            if self._jobs.empty():
                self._when_idle()


class SqliteAppender:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = OneThread("audit-sqlite", when_idle=self._move_log)
        self._connection: sqlite3.Connection | None = None  # used in the thread only
        self._connected = False
        self._has_log, self._moved_at = False, time.monotonic()

    @property
    def connected(self) -> bool:
        return self._connected

    async def connect(self) -> None:
        await self._in_thread(self._reopen)
        self._connected = True

    async def durability_problem(self) -> str | None:
        return await self._in_thread(self._durability_problem)

    async def append(self, rows: list[AuditRow], signed: Sequence[CheckpointRow] = ()) -> None:
        inserts = [*_inserts(rows)]
        await self._in_thread(lambda: self._insert(inserts, signed))

    async def head(self, month: str, chain_id: UUID) -> ChainHead | None:
        found = await self._in_thread(lambda: self._open().execute(HEAD, (month, chain_id.hex)).fetchone())
        return ChainHead(month, chain_id, *found) if found else None

    def drop(self) -> None:
        self._connected = False

    async def close(self) -> None:
        self._connected = False
        with suppress(DatabaseUnavailable):
            await self._in_thread(self._close)
        self._thread.close()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await self._thread.run(work, STATEMENT_SECONDS)
        except (sqlite3.Error, OSError) as error:  # TimeoutError is an OSError
            raise DatabaseUnavailable from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise sqlite3.OperationalError("not connected")
        return self._connection

    def _reopen(self) -> None:
        self._close()
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._connection = connection
        set_pragmas(connection)
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")

    def _durability_problem(self) -> str | None:
        [synchronous], [journal_mode] = (self._open().execute(pragma).fetchone() for pragma in SQLITE_SETTINGS)
        return sqlite_problem(synchronous, journal_mode)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _insert(self, inserts: Sequence["Insert"], signed: Sequence[CheckpointRow]) -> None:
        connection = self._open()
        with connection:  # commits at the end, or rolls back
            connection.execute("BEGIN IMMEDIATE")  # a read that turns into a write would not wait for the lock
            for statement, parameters, rows in inserts:
                if connection.execute(statement, parameters).rowcount != rows:  # a trigger can leave rows out
                    raise sqlite3.IntegrityError("rows were not inserted")
            connection.executemany(INSERT_SIGNED, [(row.writer.hex, *row[1:]) for row in signed])
        self._has_log = True

    def _move_log(self) -> None:
        """Moves what was committed from the write-ahead log into the file, between two commits.

        Otherwise the commit that finds `LOG_PAGES` in the log moves them all, and every request that waits for it also
        waits for two more flushes of the disk. If the log is busy or the disk is full, what is not moved stays there.

        Here and not beside the commits, on another connection: before 3.51.3 SQLite can lose what was committed if one
        connection begins to move a log that is already moved, while another one commits ("WAL-reset bug").
        """
        connection, now = self._connection, time.monotonic()
        if connection is None or not self._has_log or now < self._moved_at + MOVE_SECONDS:
            return
        self._has_log, self._moved_at = False, now
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


class Insert(NamedTuple):
    statement: str
    parameters: list[object]
    rows: int


def _inserts(rows: Sequence[AuditRow]) -> Iterator[Insert]:
    """By few statements, and of few different sizes, so that each is prepared once.

    A thread that calls SQLite, or deflates, waits for the event loop afterwards. So the rows are made ready here, and
    the thread does not wait after each of them.
    """
    while rows:
        count = 1 << len(rows).bit_length() - 1  # the largest power of two
        parameters = [value for row in rows[:count] for value in _parameters(row)]
        yield Insert(f"INSERT INTO audit_records VALUES {', '.join([ROW] * count)}", parameters, count)  # noqa: S608
        rows = rows[count:]


def _parameters(row: AuditRow) -> tuple[object, ...]:
    month, chain_id, seq, record_id, *rest = stored_row(row)
    return (month, chain_id.hex, seq, record_id.hex, *rest)
