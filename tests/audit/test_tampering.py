"""Every kind of tampering with signed rows is refused by the database or found, and both verifiers say the same."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from app.database.engine import Database
from app.settings import Settings
from tests.audit.both_verifiers import Auditor, crash, fill, open_writer
from tests.audit.recording import score
from tests.audit.tampering import TAMPERS, Stored, apply, can_store, edit_column, only_adds, read_stored, respell

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_both_verifiers_find_every_kind_of_tampering(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    pick = random.Random(13)  # noqa: S311 - the same changes every time
    await fill(settings, database, pick)
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    clean = await auditor.verify()
    assert clean.by_service == clean.by_tool == frozenset()
    base = await read_stored(database)
    outcomes = set()
    for tamper in TAMPERS:
        for as_owner in (True, False):
            tampered, expected = tamper(base, pick)
            if not can_store(database, tampered):
                outcomes.add((tamper.__name__, "not possible"))
                continue
            if not await apply(database, base, tampered, as_owner):
                outcomes.add((tamper.__name__, "refused"))
                continue
            assert as_owner or only_adds(base, tampered)
            found = await auditor.verify()
            assert found.kinds & expected, (tamper.__name__, found)
            assert found.by_service == found.by_tool, (tamper.__name__, found)
            outcomes.add((tamper.__name__, "found"))
            assert await apply(database, tampered, base, as_owner=True)
    possible = [tamper for tamper in TAMPERS if tamper is not respell or database.dialect == "sqlite"]
    assert {name for name, outcome in outcomes if outcome == "found"} == {tamper.__name__ for tamper in possible}
    assert ("delete_middle", "refused") in outcomes  # without the owner's rights
    assert (await auditor.verify()).by_tool == frozenset()


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_key_that_exists_is_no_refusal(settings: Settings, database: Database) -> None:
    base = await read_stored_of_one_writer(settings, database)
    without_first = replace(base, rows=base.rows[1:])
    with pytest.raises(IntegrityError):
        await apply(database, without_first, base, as_owner=False)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_the_service_tries_an_update_where_a_row_stays(settings: Settings, database: Database) -> None:
    base = await read_stored_of_one_writer(settings, database)
    edited, _ = edit_column(base, random.Random(1))  # noqa: S311 - repeatable
    assert not await apply(database, base, edited, as_owner=False)
    async with database.writing() as connection:
        await connection.execute(text("DROP TRIGGER audit_records_no_update"))
    assert await apply(database, base, edited, as_owner=False)
    assert set((await read_stored(database)).rows) == set(edited.rows)


async def read_stored_of_one_writer(settings: Settings, database: Database) -> Stored:
    writer = await open_writer(settings, database)
    await writer.write([score("signed")])
    await writer.stop()
    return await read_stored(database)


async def test_a_running_writer_and_a_crashed_one_are_no_findings(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    crashed, running = await open_writer(settings, database), await open_writer(settings, database)
    for writer in (crashed, running):
        await writer.write([score("not signed yet")])
    await crash(crashed)
    found = await Auditor.of(settings, database, tmp_path / "auditor").verify()
    assert found.by_service == found.by_tool == frozenset()
    await running.stop()
