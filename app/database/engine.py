"""The database of this process: a small pool for everything but the audit writer, which has a connection of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from ssl import SSLCertVerificationError
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from sqlalchemy import Connection, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.database import postgres, sqlite
from app.database.appender import STATEMENT_SECONDS, Appender
from app.database.tolerant import tolerant_text
from app.errors import DatabaseNotReady, DatabaseNotTrusted, DatabaseUnavailable
from app.settings import Settings

POOL_SIZE = 4  # readers per process; with the writer five connections of the server
POOL_WAIT_SECONDS = 2.0
SERVING_SECONDS = 2.2  # waiting for a connection, trying it and asking, together: a refusal leaves within 2.5 s
OUR_OWN_FAULTS = (IntegrityError, ProgrammingError, DataError)  # a statement that is wrong, not a database that is away


@dataclass(frozen=True, slots=True)
class Database:
    dialect: Literal["postgresql", "sqlite"]
    location: str = field(repr=False)  # a URL with its password, or a file
    engine: AsyncEngine = field(repr=False)
    block_seconds: float | None = None  # at most so long for a whole block of statements; None: as long as it takes

    @property
    def file(self) -> Path:
        """Of the embedded database."""
        return Path(self.location)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """One transaction that sees one state."""
        async with (
            _faults_named(),
            asyncio.timeout(self.block_seconds),
            self.engine.connect() as connection,
            self._interrupted(connection),
        ):
            if self.dialect == "postgresql":  # by default every statement would see a state of its own
                await connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """One transaction, committed at the end of the block."""
        async with _faults_named(), asyncio.timeout(self.block_seconds), self.engine.connect() as connection:
            await connection.execution_options(writes=True)
            async with connection.begin():
                yield connection

    def unbounded(self) -> "Database":
        """For work that may take as long as it takes."""
        return replace(self, block_seconds=None)

    @asynccontextmanager
    async def _interrupted(self, connection: AsyncConnection) -> AsyncIterator[None]:
        """PostgreSQL ends a statement that takes too long by itself; SQLite has to be told."""
        if self.dialect == "postgresql" or self.block_seconds is None:
            yield
            return
        driver: Any = (await connection.get_raw_connection()).driver_connection
        loop = asyncio.get_running_loop()
        timer = loop.call_later(STATEMENT_SECONDS, lambda: loop.create_task(driver.interrupt()))
        try:
            yield
        finally:
            timer.cancel()

    def appender(self) -> Appender:
        if self.dialect == "sqlite":
            return sqlite.SqliteAppender(self.file)
        return postgres.PostgresAppender(self.location)

    async def close(self) -> None:
        await self.engine.dispose()


def open_database(settings: Settings, statement_seconds: float | None = STATEMENT_SECONDS) -> Database:
    """No connection is made yet. Long work (migrations, verification) passes None for no limit per statement."""
    if settings.database_url:
        return _postgres(_with_tls(settings), statement_seconds)
    return _sqlite(settings.data_dir / sqlite.FILE_NAME, statement_seconds)


def _with_tls(settings: Settings) -> str:
    """As part of the URL, so that the pool and the audit writer cannot differ."""
    if settings.database_tls == "prefer":  # the driver's default, unless the URL says otherwise
        return settings.database_url
    wanted = {"sslmode": settings.database_tls, "sslrootcert": settings.database_tls_ca}
    url = urlsplit(settings.database_url)
    query = urlencode(parse_qsl(url.query) + [(name, value) for name, value in wanted.items() if value])
    return url._replace(query=query).geturl()


def _postgres(dsn: str, statement_seconds: float | None) -> Database:
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=partial(postgres.connect, dsn, statement_seconds),
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS,
        pool_pre_ping=True,
        hide_parameters=True,  # else they stand in the text of every exception
    )
    return Database("postgresql", dsn, engine, _block(statement_seconds))


def _sqlite(file: Path, statement_seconds: float | None) -> Database:
    sqlite.create_private_file(file)
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(file)),
        connect_args={"isolation_level": None},  # transactions begin where `_begin` says
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "connect", _prepare)
    event.listen(engine.sync_engine, "begin", _begin)
    return Database("sqlite", str(file), engine, _block(statement_seconds))


def _block(statement_seconds: float | None) -> float | None:
    return None if statement_seconds is None else SERVING_SECONDS


def _prepare(connection: Any, _record: object) -> None:
    connection.driver_connection.text_factory = tolerant_text
    sqlite.prepare(connection)


def _begin(connection: Connection) -> None:
    # A transaction that starts by reading cannot wait for the lock when it comes to write.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@asynccontextmanager
async def _faults_named() -> AsyncIterator[None]:
    try:
        yield
    except OUR_OWN_FAULTS:
        raise
    except OperationalError as error:
        if "no such " in str(error.orig):  # SQLite, of a table or a column
            raise DatabaseNotReady("The database has not the tables of this program: somebody changed them.") from error
        raise DatabaseUnavailable from error
    except SSLCertVerificationError as error:
        raise DatabaseNotTrusted from error
    except (DBAPIError, PoolTimeout, *postgres.FAULTS) as error:
        raise DatabaseUnavailable from error
