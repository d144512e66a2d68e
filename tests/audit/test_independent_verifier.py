"""tools/verify_audit.py on an audit that is large, exported in any order, or still being written."""

import asyncio
import os
import tracemalloc
from pathlib import Path

import pytest

from app.audit.chain import genesis, link, new_chain
from app.audit.records import encode
from app.clock import month_of, utc_now
from app.database.engine import Database
from app.database.records import add_records
from app.settings import Settings
from tests.audit.both_verifiers import TOOL, Auditor, open_writer
from tests.audit.recording import FACTS, score

pytestmark = pytest.mark.anyio
ROWS, SIZE = 150, 200_000  # 30 MB of payloads
MEMORY = 10_000_000  # bytes


async def test_its_memory_does_not_grow_with_the_records(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    head = new_chain(month_of(utc_now()))
    scores = [encode(score(f"request-{number}", output={"filling": "x" * SIZE})) for number in range(ROWS)]
    async with database.writing() as connection:
        await add_records(connection, link(head, [genesis(head, utc_now(), FACTS), *scores])[0])
    audit, signed = await Auditor.of(settings, database, tmp_path / "auditor").tables()
    tracemalloc.start()
    records, _, problems, _ = TOOL.verify(audit, signed, [], None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (records, problems) == (ROWS + 1, [])
    assert peak < MEMORY


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_the_order_of_an_export_does_not_matter(settings: Settings, database: Database, tmp_path: Path) -> None:
    writers = [await open_writer(settings, database) for _ in range(3)]
    for number in range(5):
        for writer in writers:
            await writer.write([score(f"request-{number}")])
    for writer in writers:
        await writer.stop()
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    audit, signed = await auditor.tables()
    header, *lines = audit.read_text().splitlines(keepends=True)
    audit.write_text(header + "".join(sorted(lines, key=lambda line: line.split(",")[2])))
    keys = TOOL.Keys([auditor.folder / "public.pem"])
    assert TOOL.verify(audit, signed, [auditor.copy], keys)[:3] == (21, 3, [])


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_what_a_service_signs_meanwhile_is_not_missing(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    """The file of checkpoints is a pipe here: the tool waits for it while the service goes on."""
    writer = await open_writer(settings, database)
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    pipe = tmp_path / "signed.jsonl"
    os.mkfifo(pipe)
    audit, _ = await auditor.tables()
    keys = TOOL.Keys([auditor.folder / "public.pem"])
    found = asyncio.create_task(asyncio.to_thread(TOOL.verify, audit, None, [pipe], keys))
    opened = await asyncio.to_thread(pipe.open, "wb")  # as soon as the tool has opened it
    await writer.write([score()])
    await writer.stop()
    auditor.copy_checkpoints()
    with opened:
        opened.write(auditor.copy.read_bytes())
    assert (await found)[2] == []
