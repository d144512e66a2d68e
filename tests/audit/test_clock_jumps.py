"""Clocks that were set forward or back: no false alarm, and nothing that is overlooked because of it."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from app.audit.chain import link
from app.audit.records import encode
from app.clock import utc_now
from app.database.engine import Database
from app.database.records import add_records
from app.settings import Settings
from tests.audit.both_verifiers import Auditor, Findings, crash, open_writer
from tests.audit.recording import all_rows, score

pytestmark = pytest.mark.anyio

DAY = timedelta(days=1)
NOTHING: Findings = frozenset()


class Clock:
    def __init__(self) -> None:
        self.now = utc_now().replace(day=15)  # a day earlier or later is in the same month

    def __call__(self) -> datetime:
        return self.now


async def test_a_clock_set_forward_and_back_is_no_damage(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    clock = Clock()
    writer = await open_writer(settings, database, clock)
    for days in (1, -1, 0):  # the last record is not signed yet
        clock.now += days * DAY
        await writer.write([score(f"after-{days}", at=clock.now)])
    await crash(writer)
    found = await Auditor.of(settings, database, tmp_path / "auditor").verify()
    assert (found.by_service, found.by_tool) == (NOTHING, NOTHING)


async def test_a_request_that_began_before_the_clock_was_set_forward_is_no_damage(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    clock = Clock()
    writer = await open_writer(settings, database, clock)
    before, clock.now = clock.now, clock.now + DAY
    await writer.write([score("first", at=clock.now)])
    await writer.write([score("second", at=before)])
    await crash(writer)
    found = await Auditor.of(settings, database, tmp_path / "auditor").verify()
    assert (found.by_service, found.by_tool) == (NOTHING, NOTHING)


async def test_a_chain_closed_after_the_clock_was_set_back_is_closed(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    clock = Clock()
    writer = await open_writer(settings, database, clock)
    [row] = await all_rows(database)
    forged = link(row.head, [encode(score("forged", at=clock.now))])[0]
    clock.now -= DAY
    async with database.writing() as connection:
        await add_records(connection, forged)
    async with asyncio.timeout(30):
        while not writer.found_foreign_rows:
            await asyncio.sleep(0.05)
    await writer.stop()
    found = await Auditor.of(settings, database, tmp_path / "auditor").verify()
    assert found.by_service == found.by_tool == {("UNSIGNED", f"{row.chain_id} 2")}
