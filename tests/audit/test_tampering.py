"""Every kind of tampering with signed rows is refused by the database or found, and both verifiers say the same."""

import random
from pathlib import Path

import pytest

from app.database.engine import Database
from app.settings import Settings
from tests.audit.both_verifiers import Auditor, crash, fill, open_writer
from tests.audit.recording import score
from tests.audit.tampering import TAMPERS, apply, read_stored, respell

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
            if not await apply(database, base, tampered, as_owner):
                outcomes.add((tamper.__name__, "refused"))
                continue
            found = await auditor.verify()
            assert found.kinds & expected, (tamper.__name__, found)
            assert found.by_service == found.by_tool, (tamper.__name__, found)
            outcomes.add((tamper.__name__, "found"))
            assert await apply(database, tampered, base, as_owner=True)
    possible = [tamper for tamper in TAMPERS if tamper is not respell or database.dialect == "sqlite"]
    assert {name for name, outcome in outcomes if outcome == "found"} == {tamper.__name__ for tamper in possible}
    assert ("delete_middle", "refused") in outcomes  # without the owner's rights
    assert (await auditor.verify()).by_tool == frozenset()


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
