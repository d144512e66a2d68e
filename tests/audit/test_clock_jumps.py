"""Clocks that were set forward or back: no false alarm, and nothing that is overlooked because of it."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from app.audit.chain import link
from app.audit.records import encode
from app.audit.signed_checkpoint import read_body
from app.clock import timestamp, utc_now
from app.database.checkpoints import add_checkpoints, stream_checkpoints
from app.database.engine import Database
from app.database.records import add_records
from app.settings import Settings
from tests.audit.both_verifiers import Auditor, Findings, crash, open_writer
from tests.audit.faulty_appender import FaultyAppender
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


@pytest.mark.parametrize("fault", ["reply lost", "in doubt"])
async def test_a_signature_whose_reply_was_lost_before_the_clock_was_set_back_is_no_damage(
    settings: Settings, database: Database, tmp_path: Path, fault: str
) -> None:
    clock = Clock()
    appender = FaultyAppender(database.appender())
    writer = await open_writer(settings, database, clock, appender)
    await writer.write([score("first", at=clock.now)])
    clock.now += DAY
    appender.fault = fault  # of the idle writer, which signs
    async with asyncio.timeout(30):
        while appender.fault:
            await asyncio.sleep(0.02)
    clock.now += timedelta(seconds=10) - DAY
    for number in (2, 3):
        await writer.write([score(f"request-{number}", at=clock.now)])
    if fault == "in doubt":  # it is committed only now, after the ones that follow it
        async with database.writing() as connection:
            await add_checkpoints(connection, appender.signed_in_doubt)
    await crash(writer)
    found = await Auditor.of(settings, database, tmp_path / "auditor").verify()
    assert (found.by_service, found.by_tool) == (NOTHING, NOTHING)
    async with database.reading() as connection:
        times = [read_body(row.body).at async for row in stream_checkpoints(connection)]
    assert timestamp(clock.now - timedelta(seconds=10) + DAY) in times  # it was committed, although no reply came


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
