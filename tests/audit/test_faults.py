"""What happens to the audit when the database, or the process, goes away."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import pytest

from app.audit.chain import link, new_chain
from app.audit.records import encode
from app.audit.writer import AuditWriter
from app.clock import month_of, utc_now
from app.database.engine import Database
from app.errors import AuditUnavailable, DatabaseUnavailable
from app.observability import make_metrics
from app.settings import Settings
from tests.audit.faulty_appender import FaultyAppender
from tests.audit.recording import NOT_HUNG, all_rows, author, score, verified, write_until_served, writes_blocked
from tests.postgres import PostgresServer, PrivateServer

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
OpenWriter = Callable[..., Awaitable[AuditWriter]]
ON_POSTGRES = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
ON_SQLITE = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)

WRITERS_BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ~ '^INSERT INTO audit_records'"
)


async def acknowledged_until(stopped: asyncio.Event, writer: AuditWriter) -> list[UUID]:
    """What one client gets that sends one request after the other, whatever happens."""
    ids: list[UUID] = []
    while not stopped.is_set():
        try:
            ids += await writer.write([score()])
        except AuditUnavailable:
            await asyncio.sleep(0.01)
    return ids


async def present(database: Database) -> set[UUID]:
    return {row.record_id for row in await all_rows(database)}


async def test_a_locked_database_refuses_in_time_and_is_used_again_when_free(
    writer: AuditWriter, database: Database
) -> None:
    async with writes_blocked(database):
        for _ in range(2):
            with pytest.raises(AuditUnavailable):
                async with asyncio.timeout(NOT_HUNG):
                    await writer.write([score("refused")])
    after = await write_until_served(writer)
    assert after in await present(database)
    assert (await verified(database)).intact


@pytest.mark.parametrize("fault", ["reply lost", "in doubt"])
async def test_a_commit_in_doubt_is_refused_and_the_chain_goes_on(
    database: Database, open_writer: OpenWriter, fault: str
) -> None:
    appender = FaultyAppender(database.appender())
    writer = await open_writer(appender=appender)
    appender.fault = fault
    with pytest.raises(AuditUnavailable):
        await writer.write([score("in doubt")])
    await writer.write([score("next")])
    found = await verified(database)
    assert (found.intact, found.chains) == (True, 1)
    requests = [row.request_id for row in await all_rows(database) if row.kind == "score"]
    assert requests == (["in doubt", "next"] if fault == "reply lost" else ["next"])


async def test_a_writer_that_cannot_open_its_chain_does_not_start(database: Database) -> None:
    appender = FaultyAppender(database.appender())
    appender.fault = "in doubt"
    writer = AuditWriter(appender, author(), make_metrics())
    with pytest.raises(AuditUnavailable):
        await writer.start()
    with pytest.raises(AuditUnavailable):
        await writer.write([score()])
    await writer.stop()
    assert await all_rows(database) == []


@pytest.mark.req("REQ-073")
async def test_a_zombie_that_commits_late_is_stopped_by_the_fence(database: Database, open_writer: OpenWriter) -> None:
    appender = FaultyAppender(database.appender())
    writer = await open_writer(appender=appender)
    appender.fault = "in doubt"
    with pytest.raises(AuditUnavailable):
        await writer.write([score("zombie")])
    await writer.write([score("next")])
    zombie = database.appender()
    await zombie.connect()
    with pytest.raises(DatabaseUnavailable):
        await zombie.append(appender.in_doubt)
    await zombie.close()
    assert [row.request_id for row in await all_rows(database) if row.kind == "score"] == ["next"]
    assert (await verified(database)).intact


@pytest.mark.req("REQ-073")
async def test_two_writers_of_one_chain_cannot_both_commit(database: Database) -> None:
    head = new_chain(month_of(utc_now()))
    appenders = [database.appender() for _ in range(2)]
    outcomes = []
    for appender in appenders:
        await appender.connect()
        rows, _ = link(head, [encode(score()) for _ in range(3)])
        outcomes.append(asyncio.create_task(appender.append(rows)))
    done = await asyncio.gather(*outcomes, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in done) == ["DatabaseUnavailable", "NoneType"]
    assert len(await all_rows(database)) == 3
    for appender in appenders:
        await appender.close()


async def test_a_month_that_turns_while_the_database_is_away_leaves_no_damage(
    database: Database, open_writer: OpenWriter
) -> None:
    appender = FaultyAppender(database.appender())
    now = [utc_now()]
    writer = await open_writer(appender=appender, clock=lambda: now[0])
    now[0] = now[0].replace(year=now[0].year + 1)
    appender.fault = "reply lost"
    with pytest.raises(AuditUnavailable):
        await writer.write([score("turning")])
    await writer.write([score("next")])
    await writer.stop()
    found = await verified(database)
    assert (found.intact, found.chains, len(found.open_chains)) == (True, 2, 0)  # it noticed that it was committed


@pytest.mark.req("REQ-072")
async def test_kill_9_loses_no_acknowledged_record(settings: Settings, database: Database) -> None:
    environment = os.environ | {
        "NORMALCY_DATA_DIR": str(settings.data_dir),
        "NORMALCY_DATABASE_URL": settings.database_url,
    }
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.audit.endless_writer"], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        acknowledged = [process.stdout.readline() for _ in range(300)]
        process.kill()
        acknowledged += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        assert {UUID(line.strip()) for line in acknowledged if line.endswith("\n")} <= await present(database)
    found = await verified(database)
    assert (found.intact, found.chains, len(found.open_chains)) == (True, 2, 2)


@ON_POSTGRES
async def test_postgres_that_crashes_under_load_loses_nothing_and_is_used_again(
    database: Database, writer: AuditWriter, server: PostgresServer
) -> None:
    private = _ours(server)
    stopped = asyncio.Event()
    clients = [asyncio.create_task(acknowledged_until(stopped, writer)) for _ in range(16)]
    for _ in range(2):
        await asyncio.sleep(0.2)
        await asyncio.to_thread(private.stop, "immediate")
        with pytest.raises(AuditUnavailable):
            async with asyncio.timeout(NOT_HUNG):
                await writer.write([score("while away")])
        await asyncio.to_thread(private.start)
        await write_until_served(writer)
    stopped.set()
    acknowledged = [record_id for ids in await asyncio.gather(*clients) for record_id in ids]
    await writer.stop()
    assert acknowledged
    assert set(acknowledged) <= await present(database)
    found = await verified(database)
    assert (found.intact, found.chains, found.open_chains) == (True, 1, ())


@ON_POSTGRES
async def test_a_restart_while_idle_is_not_even_noticed(
    database: Database, writer: AuditWriter, server: PostgresServer
) -> None:
    private = _ours(server)
    await writer.write([score()])
    await asyncio.to_thread(private.stop, "immediate")
    await asyncio.to_thread(private.start)
    await asyncio.sleep(0.05)  # the closed connection is noticed in the next turn of the event loop
    async with asyncio.timeout(NOT_HUNG):
        await writer.write([score()])
    assert (await verified(database)).intact


@ON_POSTGRES
async def test_a_frozen_backend_that_wakes_up_cannot_add_its_rows(
    database: Database, writer: AuditWriter, server: PostgresServer
) -> None:
    _ours(server)
    await writer.write([score("before")])
    observer = await asyncpg.connect(database.location)
    frozen = [row["pid"] for row in await observer.fetch(WRITERS_BACKENDS)]
    assert len(frozen) == 1
    try:
        os.kill(frozen[0], signal.SIGSTOP)
        with pytest.raises(AuditUnavailable):
            async with asyncio.timeout(NOT_HUNG):
                await writer.write([score("frozen")])
        await write_until_served(writer)
    finally:
        os.kill(frozen[0], signal.SIGCONT)
    async with asyncio.timeout(NOT_HUNG):  # it executes what it had received, and goes
        while await observer.fetch("SELECT 1 FROM pg_stat_activity WHERE pid = $1", frozen[0]):
            await asyncio.sleep(0.05)
    await observer.close()
    assert [row.request_id for row in await all_rows(database) if row.kind == "score"] == ["before", "after"]
    assert (await verified(database)).intact


@ON_SQLITE
async def test_a_full_disk_refuses_and_the_chain_goes_on_when_there_is_room(
    database: Database, writer: AuditWriter
) -> None:
    await writer.write([score("before")])
    # A page limit holds for one connection: the writer's own, which is its appender's.
    connection: sqlite3.Connection = writer._appender._connection  # type: ignore[attr-defined]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(AuditUnavailable):
        await writer.write([score(str(n), output={"filling": "x" * 3000}) for n in range(50)])
    await writer.write([score("after")])
    assert [row.request_id for row in await all_rows(database) if row.kind == "score"] == ["before", "after"]
    assert (await verified(database)).intact


def _ours(server: PostgresServer) -> PrivateServer:
    if not isinstance(server, PrivateServer):
        pytest.skip("a server that is not ours is not stopped")
    return server
