"""Many checkpoints are read one at a time, and what they repeat is stored once."""

import asyncio
import tracemalloc
from pathlib import Path
from uuid import UUID

import pytest

from app.audit.author import FOLDER
from app.audit.checkpoint import Checkpoint, render
from app.database.engine import Database, open_database
from app.database.records import ChainHead
from app.services.stored_checkpoints import StoredCheckpoints, read_checkpoints
from app.settings import Settings

CHAINS = 1000


def write_checkpoints(folder: Path, days: int) -> None:
    """One a day. One chain grows every day, the others do not change."""
    folder.mkdir(exist_ok=True)
    for day in range(1, days + 1):
        ends = [ChainHead("2026-10", UUID(int=chain), day if chain == 0 else 3, bytes(32)) for chain in range(CHAINS)]
        taken = Checkpoint(f"2026-10-{day:02}T12:00:00.000Z", {end.chain_id: end for end in ends}, "sqlite")
        (folder / f"2026-10-{day:02}-sqlite.jsonl").write_bytes(render(taken))


def read(settings: Settings) -> tuple[StoredCheckpoints, int]:
    """The checkpoints in the folder, and the peak memory of reading them."""

    async def work() -> tuple[StoredCheckpoints, int]:
        database = open_database(settings)
        try:
            return await measured(database)
        finally:
            await database.close()

    async def measured(database: Database) -> tuple[StoredCheckpoints, int]:
        tracemalloc.start()
        try:
            return read_checkpoints("sqlite", settings.data_dir, "folder"), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return asyncio.run(work())


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.slow
def test_a_month_of_checkpoints_takes_hardly_more_memory_than_two_days(settings: Settings) -> None:
    write_checkpoints(settings.data_dir / FOLDER, 2)
    _, of_two_days = read(settings)
    write_checkpoints(settings.data_dir / FOLDER, 30)
    stored, of_a_month = read(settings)
    assert len(stored.compared) == 30
    assert len(stored.coverage.hashes) == CHAINS
    assert set(stored.coverage.hashes[UUID(int=0)]) == set(range(1, 31))
    assert set(stored.coverage.hashes[UUID(int=1)]) == {3}
    assert of_a_month < 1.5 * of_two_days
