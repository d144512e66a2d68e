"""The database of this process: a connection pool for everything but the audit writer, which has its own connection.

`Connection` is the type of an open transaction: other packages pass it to the functions of this package.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from ssl import SSLCertVerificationError
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

from sqlalchemy import Connection as SyncConnection
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.database import postgres, sqlite
from app.database.appender import STATEMENT_SECONDS, Appender
from app.database.tables import decode_leniently
from app.errors import DatabaseNotReady, DatabaseNotTrusted, DatabaseUnavailable
from app.settings import Settings

Connection: TypeAlias = AsyncConnection

POOL_SIZE = 4  # readers per process; with the writer, five connections to the server
POOL_WAIT_SECONDS = 2.0
SERVING_SECONDS = 2.2  # to get a connection, test it and run the queries: a 503 must leave within 2.5 s
PROGRAMMING_ERRORS = (IntegrityError, ProgrammingError, DataError)  # a wrong statement, not an unreachable database


@dataclass(frozen=True, slots=True)
class Database:
    dialect: Literal["postgresql", "sqlite"]
    location: str = field(repr=False)  # a URL with its password, or a file
    engine: AsyncEngine = field(repr=False)
    block_seconds: float | None = None  # time limit of a whole block of statements; None: no limit

    @property
    def file(self) -> Path:
        """SQLite's."""
        return Path(self.location)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """One transaction that sees one state of the database."""
        async with (
            _errors_translated(),
            asyncio.timeout(self.block_seconds),
            self.engine.connect() as connection,
            self._statement_timeout(connection),
        ):
            if self.dialect == "postgresql":  # by default each statement would see the latest state
                await connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        """One transaction, committed at the end of the block."""
        async with _errors_translated(), asyncio.timeout(self.block_seconds), self.engine.connect() as connection:
            await connection.execution_options(writes=True)
            async with connection.begin():
                yield connection

    def without_timeouts(self) -> "Database":
        """For work of unknown length, such as migrations."""
        return replace(self, block_seconds=None)

    @asynccontextmanager
    async def _statement_timeout(self, connection: Connection) -> AsyncIterator[None]:
        """PostgreSQL stops a statement that takes too long by itself; SQLite has to be interrupted."""
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
    """Does not connect yet. Long work (migrations, verification) passes None for no limit per statement."""
    if settings.database_url:
        return _postgres(_with_tls(settings), statement_seconds)
    return _sqlite(settings.data_dir / sqlite.FILE_NAME, statement_seconds)


@asynccontextmanager
async def command_connection(settings: Settings) -> AsyncIterator[Database]:
    """For one command: without timeouts, closed at the end. Raises DatabaseNotReady if the login lacks rights."""
    database = open_database(settings, statement_seconds=None)
    try:
        yield database
    except ProgrammingError as error:  # the tables are there, or the checks would have said so
        raise DatabaseNotReady(
            "The login of NORMALCY_DATABASE_URL does not have the rights that this command needs."
        ) from error
    finally:
        await database.close()


def _with_tls(settings: Settings) -> str:
    """In the URL, so that the pool and the audit writer use the same TLS settings."""
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
        hide_parameters=True,  # else they appear in the text of every exception
    )
    return Database("postgresql", dsn, engine, _block(statement_seconds))


def _sqlite(file: Path, statement_seconds: float | None) -> Database:
    sqlite.create_private_file(file)
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(file)),
        connect_args={"isolation_level": None},  # `_begin` starts transactions
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "connect", _configure)
    event.listen(engine.sync_engine, "begin", _begin)
    return Database("sqlite", str(file), engine, _block(statement_seconds))


def _block(statement_seconds: float | None) -> float | None:
    return None if statement_seconds is None else SERVING_SECONDS


def _configure(connection: Any, _record: object) -> None:
    connection.driver_connection.text_factory = decode_leniently
    sqlite.set_pragmas(connection)


def _begin(connection: SyncConnection) -> None:
    # A transaction that starts by reading cannot wait for the lock when it needs to write.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@asynccontextmanager
async def _errors_translated() -> AsyncIterator[None]:
    try:
        yield
    except PROGRAMMING_ERRORS:
        raise
    except OperationalError as error:
        if "no such " in str(error.orig):  # SQLite: no such table, or column
            raise DatabaseNotReady("Tables or columns of this program are missing from the database.") from error
        raise DatabaseUnavailable from error
    except SSLCertVerificationError as error:
        raise DatabaseNotTrusted from error
    except (DBAPIError, PoolTimeout, *postgres.CONNECTION_ERRORS) as error:
        raise DatabaseUnavailable from error
