"""Connections: what is said when the database is away, and what is never said."""

from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError

from app.audit.changes import add_key
from app.clock import later_month, month_of, timestamp, utc_now
from app.database.engine import Database, open_database
from app.database.keys import list_keys, make_key, save_key
from app.database.migrate import pending_migrations
from app.database.records import records_of_kind
from app.errors import DatabaseNotReady, DatabaseUnavailable
from app.settings import load_settings
from tests.audit.recording import change

anyio = pytest.mark.anyio


@anyio
async def test_a_server_that_is_away_is_named_as_such(tmp_path: Path) -> None:
    url = f"postgresql://someone:hidden@/nowhere?host={tmp_path}"
    database = open_database(load_settings({"NORMALCY_DATABASE_URL": url}))
    with pytest.raises(DatabaseUnavailable):
        await pending_migrations(database)
    assert "hidden" not in repr(database)
    await database.close()


@anyio
async def test_a_statement_of_ours_that_is_wrong_is_not_blamed_on_the_database(database: Database) -> None:
    key = make_key("ward", ["score"], utc_now()).key
    async with database.writing() as connection:
        await save_key(connection, key)
    with pytest.raises(IntegrityError):
        async with database.writing() as connection:
            await save_key(connection, key)


@anyio
async def test_no_exception_repeats_a_value(database: Database) -> None:
    with pytest.raises((DBAPIError, DatabaseNotReady)) as caught:
        async with database.writing() as connection:
            await connection.execute(text("INSERT INTO nowhere VALUES (:value)"), {"value": "CANARY"})
    assert "CANARY" not in f"{caught.value} {caught.value.__cause__}"


@anyio
async def test_a_block_that_fails_leaves_nothing_behind(database: Database) -> None:
    async def failing() -> None:
        async with database.writing() as connection:
            await save_key(connection, make_key("ward", ["score"], utc_now()).key)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await failing()
    async with database.reading() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM api_keys")) == 0


@anyio
async def test_reading_sees_one_state_while_others_write(database: Database) -> None:
    """Else verification would report a key that is created between two of its queries as a key without a record."""
    async with database.reading() as connection:
        assert await records_of_kind(connection, "key") == []
        async with database.writing() as other:
            await add_key(change(other), make_key("ward", ["score"], utc_now()).key, "admin", utc_now())
        assert await list_keys(connection) == []
    async with database.reading() as connection:
        assert (len(await records_of_kind(connection, "key")), len(await list_keys(connection))) == (1, 1)


def test_times_are_text_in_the_order_of_time() -> None:
    now = utc_now()
    assert len(timestamp(now)) == 24
    assert timestamp(now).endswith("Z")
    assert month_of(now) == timestamp(now)[:7]
    assert [later_month("2026-11", by) for by in (0, 1, 2, 14)] == ["2026-11", "2026-12", "2027-01", "2028-01"]


@anyio
async def test_a_statement_that_takes_too_long_is_ended_and_the_connection_serves_again(database: Database) -> None:
    """The numbers up to a limit that nobody waits for."""
    endless = text("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 4e9) SELECT sum(x) FROM n")
    with pytest.raises(DatabaseUnavailable):
        async with database.reading() as connection:
            await connection.execute(endless)
    async with database.reading() as connection:
        assert (await connection.execute(text("SELECT 1"))).scalar_one() == 1
