"""What is acknowledged survives a crash, whatever somebody sets; where it would not, nothing is acknowledged."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from app.audit.changes import add_key
from app.audit.writer import AuditWriter
from app.clock import utc_now
from app.database import sqlite
from app.database.appender import PostgresSettings, postgres_problem, sqlite_problem
from app.database.engine import Database, open_database
from app.database.keys import make_key
from app.errors import AuditUnavailable, NotDurable
from app.observability import Metrics
from app.settings import Settings
from tests.audit.recording import NOT_HUNG, activate, all_rows, change, score, verified, write_until_served
from tests.postgres import PostgresServer, PrivateServer

pytestmark = pytest.mark.anyio
OpenWriter = Callable[..., Awaitable[AuditWriter]]
ON_POSTGRES = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
ON_SQLITE = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
DURABLE = PostgresSettings("on", "on", "on", "", has_unlogged_tables=False)
STANDBY = DURABLE._replace(synchronous_standby_names="another machine")


@pytest.mark.parametrize("commit", ["on", "remote_apply", "remote_write", "local"])
def test_without_standbys_whatever_waits_for_the_disk_is_accepted(commit: str) -> None:
    assert postgres_problem(DURABLE._replace(synchronous_commit=commit)) is None


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (DURABLE._replace(fsync="off"), "fsync=off"),
        (DURABLE._replace(full_page_writes="off"), "full_page_writes=off"),
        (DURABLE._replace(synchronous_commit="off"), "synchronous_commit=off"),
        (DURABLE._replace(has_unlogged_tables=True), "UNLOGGED"),
        (STANDBY._replace(synchronous_commit="local"), "synchronous_commit=local although it has synchronous standbys"),
        (STANDBY._replace(synchronous_commit="remote_write"), "synchronous_commit=remote_write"),
    ],
)
def test_what_could_lose_a_record_is_named(found: PostgresSettings, named: str) -> None:
    assert named in str(postgres_problem(found))


@pytest.mark.parametrize("commit", ["on", "remote_apply"])
def test_with_standbys_the_record_waits_for_their_disks_too(commit: str) -> None:
    assert postgres_problem(STANDBY._replace(synchronous_commit=commit)) is None


def test_sqlite_needs_full_and_its_write_ahead_log() -> None:
    assert sqlite_problem(2, "wal") is sqlite_problem(3, "wal") is None
    assert "synchronous=1" in str(sqlite_problem(1, "wal"))
    assert "journal_mode=memory" in str(sqlite_problem(2, "memory"))


@ON_POSTGRES
async def test_a_database_set_to_commit_later_still_commits_ours_at_once(
    database: Database, open_writer: OpenWriter, server: PostgresServer
) -> None:
    private, name = _ours(server), urlsplit(database.location).path.lstrip("/")
    # An asynchronous commit would now stay in memory for seconds, and the crash comes sooner.
    async with _system_setting(server, "wal_writer_delay", "10s"), _later_commits(server, name):
        writer = await open_writer()
        acknowledged = [(await writer.write([score()]))[0] for _ in range(20)]
        await asyncio.to_thread(private.stop, "immediate")
        await asyncio.to_thread(private.start)
        await write_until_served(writer)
        assert set(acknowledged) <= {row.record_id for row in await all_rows(database)}
        assert (await verified(database)).intact


@ON_POSTGRES
@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
async def test_it_stops_acknowledging_when_the_server_becomes_careless_and_comes_back(
    database: Database, open_writer: OpenWriter, server: PostgresServer, metrics: Metrics, setting: str
) -> None:
    writer = await open_writer(durability_seconds=0.0)
    await writer.write([score("before")])
    assert _durable(metrics) == 1
    async with _system_setting(server, setting, "off"):
        await _until(lambda: not writer.is_writable)  # by itself, without a request
        for _ in range(3):
            with pytest.raises(AuditUnavailable):
                await writer.write([score("careless")])
        assert f"{setting}=off" in str(writer.not_durable)
        assert _durable(metrics) == 0
    await _until(lambda: writer.is_writable)
    await writer.write([score("after")])
    assert writer.not_durable is None
    assert _durable(metrics) == 1
    await writer.stop()
    # A set: the writer comes back with a new chain, and chains are listed by their random ids.
    assert {row.request_id for row in await all_rows(database) if row.kind == "score"} == {"before", "after"}
    assert (await verified(database)).intact


@ON_POSTGRES
async def test_between_two_looks_nothing_is_asked(database: Database, open_writer: OpenWriter) -> None:
    writer = await open_writer(durability_seconds=3600.0)
    await writer._appender._open().execute("SET synchronous_commit = off")  # type: ignore[attr-defined]
    await writer.write([score()])
    writer.durability_seconds = 0.0
    with pytest.raises(AuditUnavailable):
        await writer.write([score()])
    await writer.write([score()])  # on a new connection, which asks for durable commits itself
    assert writer.is_writable


@ON_POSTGRES
async def test_a_month_that_a_crash_would_empty_is_noticed(database: Database, open_writer: OpenWriter) -> None:
    await open_writer()
    async with database.engine.connect() as connection:
        await connection.execute(text("CREATE UNLOGGED TABLE elsewhere PARTITION OF audit_records FOR VALUES IN ('')"))
        appender = database.appender()
        await connection.commit()
        try:
            await appender.connect()
            assert "UNLOGGED" in str(await appender.durability_problem())
        finally:
            await appender.close()
            await connection.execute(text("ALTER TABLE audit_records DETACH PARTITION elsewhere"))
            await connection.execute(text("DROP TABLE elsewhere"))
            await connection.commit()


@ON_POSTGRES
async def test_a_record_that_a_trigger_leaves_out_is_not_acknowledged(
    database: Database, open_writer: OpenWriter
) -> None:
    """The start refuses such a trigger; this one was created later."""
    writer = await open_writer()
    async with database.writing() as connection:
        await connection.execute(
            text("CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        )
        await connection.execute(
            text(
                "CREATE TRIGGER forget BEFORE INSERT ON audit_records FOR EACH ROW "
                "WHEN (NEW.request_id = 'forgotten') EXECUTE FUNCTION forget()"
            )
        )
    try:
        with pytest.raises(AuditUnavailable):
            await writer.write([score("forgotten")])
        await writer.write([score("another")])
    finally:
        async with database.writing() as connection:
            await connection.execute(text("DROP FUNCTION forget CASCADE"))
    assert [row.request_id for row in await all_rows(database) if row.kind == "score"] == ["another"]
    assert (await verified(database)).intact


@ON_SQLITE
async def test_an_embedded_database_that_does_not_wait_for_its_disk_is_left(
    database: Database, open_writer: OpenWriter
) -> None:
    writer = await open_writer(durability_seconds=0.0)
    connection: sqlite3.Connection = writer._appender._connection  # type: ignore[attr-defined]
    connection.execute("PRAGMA synchronous = NORMAL")
    with pytest.raises(AuditUnavailable):
        await writer.write([score("careless")])
    assert "synchronous=1" in str(writer.not_durable)
    await writer.write([score("on a new connection")])
    assert writer.is_writable
    assert [row.request_id for row in await all_rows(database) if row.kind == "score"] == ["on a new connection"]


@ON_SQLITE
async def test_an_embedded_database_that_cannot_be_made_durable_refuses_the_start(
    open_writer: OpenWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PRAGMAS", (*sqlite.PRAGMAS, "PRAGMA synchronous = OFF"))
    with pytest.raises(AuditUnavailable, match="synchronous=0"):
        await open_writer()


async def test_nor_is_a_change_of_keys_or_versions_acknowledged(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PRAGMAS", (*sqlite.PRAGMAS, "PRAGMA synchronous = OFF"))
    careless = open_database(settings)
    key = make_key("ward", ["score"], utc_now()).key
    async with careless.writing() as connection:
        if careless.dialect == "postgresql":
            await connection.execute(text("SET LOCAL synchronous_commit = off"))
        with pytest.raises(NotDurable, match="may lose records"):
            await activate(connection)
        with pytest.raises(NotDurable, match="may lose records"):
            await add_key(change(connection), key, "admin", utc_now())
    await careless.close()
    assert await all_rows(database) == []


def _ours(server: PostgresServer) -> PrivateServer:
    if not isinstance(server, PrivateServer):
        pytest.skip("needs a server of its own")
    return server


def _durable(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("normalcy_audit_durable")


@asynccontextmanager
async def _system_setting(server: PostgresServer, name: str, value: str) -> AsyncIterator[None]:
    server.run(f"ALTER SYSTEM SET {name} = '{value}'")
    server.run("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        server.run(f"ALTER SYSTEM RESET {name}")
        server.run("SELECT pg_reload_conf()")


@asynccontextmanager
async def _later_commits(server: PostgresServer, name: str) -> AsyncIterator[None]:
    server.run(f"ALTER DATABASE {name} SET synchronous_commit = off")
    try:
        yield
    finally:
        server.run(f"ALTER DATABASE {name} RESET synchronous_commit")


async def _until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(NOT_HUNG):
        while not reached():
            await asyncio.sleep(0.05)
