"""Which version is current, since when, and who said so."""

import asyncio
from datetime import timedelta
from itertools import repeat

import pytest
from sqlalchemy import insert

from app.audit.changes import short_chain
from app.clock import timestamp, utc_now
from app.database.activations import activations_since, current_activations, history
from app.database.engine import Database
from app.database.records import RecordPosition, add_records
from app.database.tables import activations
from app.domain.card import ModelRef
from tests.audit.recording import FACTS, activate, score

pytestmark = pytest.mark.anyio
NOW = utc_now()
LINE = [("SoV", "1.0.0"), ("AA", "1.0.0"), ("SoV", "1.1.0"), ("SoV", "1.0.0")]


@pytest.fixture
async def activated(database: Database) -> Database:
    for minute, (site, version) in enumerate(LINE):
        async with database.writing() as connection:
            at = repeat(NOW + timedelta(minutes=minute)).__next__
            await activate(connection, ModelRef(site, version, "ab" * 32), clock=at)
    return database


async def test_the_newest_activation_of_a_site_is_current(activated: Database) -> None:
    async with activated.reading() as connection:
        current = await current_activations(connection)
    assert {site: activation.version for site, activation in current.items()} == {"SoV": "1.0.0", "AA": "1.0.0"}
    assert current["SoV"].activated_at == timestamp(NOW + timedelta(minutes=3))


async def test_without_activations_nothing_is_current(database: Database) -> None:
    async with database.reading() as connection:
        assert await current_activations(connection) == {}
        assert await activations_since(connection, 0) == []
        assert await history(connection, "SoV") == []


async def test_history_has_no_holes(activated: Database) -> None:
    async with activated.reading() as connection:
        periods = await history(connection, "SoV")
    assert [period.activation.version for period in periods] == ["1.0.0", "1.1.0", "1.0.0"]
    begins = [period.activation.activated_at for period in periods]
    assert [period.until for period in periods] == [*begins[1:], None]
    assert {period.activation.activated_by for period in periods} == {"key:x"}


async def test_a_poll_sees_each_activation_once_and_in_order(activated: Database) -> None:
    async with activated.reading() as connection:
        seen = await activations_since(connection, 0)
        assert [(activation.site, activation.version) for activation in seen] == LINE
        assert await activations_since(connection, seen[1].id) == seen[2:]
        assert await activations_since(connection, seen[-1].id) == []


async def test_a_poll_misses_none_of_several_at_the_same_time(database: Database) -> None:
    """An id that was drawn first must not become visible last: the second activation waits for the first."""

    async def another() -> None:
        async with database.writing() as connection:
            await activate(connection, ModelRef("AA", "1.0.0", "ab" * 32))

    async with database.writing() as first:
        await activate(first)
        second = asyncio.create_task(another())
        await asyncio.sleep(0.2)
        async with database.reading() as connection:
            assert await activations_since(connection, 0) == []
    await asyncio.wait_for(second, timeout=10)
    async with database.reading() as connection:
        assert [activation.site for activation in await activations_since(connection, 0)] == ["SoV", "AA"]


async def test_a_row_that_points_at_a_record_of_another_kind_counts_as_without_one(activated: Database) -> None:
    rows = short_chain([score()], FACTS, NOW)
    made_up = {"site": "SoV", "version": "1.1.0", "sha256": "ab" * 32, "activated_at": "now", "activated_by": "x"}
    async with activated.writing() as connection:
        await add_records(connection, rows)
        await connection.execute(insert(activations).values({**made_up, **RecordPosition(*rows[1][:3])._asdict()}))
    async with activated.reading() as connection:
        assert [row.has_record for row in await activations_since(connection, 0)] == [True] * len(LINE) + [False]
        assert not (await current_activations(connection))["SoV"].has_record
