"""Write down, once a minute and at the end, where every chain stands: what shows later that nothing was cut off.

The root goes to the log as well. A log that is collected elsewhere is out of reach of whoever can change the database.
"""

import asyncio
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import structlog

from app.audit.checkpoint import Checkpoint, render, take_checkpoint
from app.database.engine import Database
from app.observability import describe_failure

EVERY_SECONDS = 60.0
FOLDER = "checkpoints"


class Checkpoints:
    def __init__(self, database: Database, data_dir: Path, clock: Callable[[], datetime]) -> None:
        self._database, self._folder, self._clock = database, data_dir / FOLDER, clock
        self._root = ""  # of the last one
        self._log = structlog.get_logger("audit")

    async def run(self) -> None:
        while True:
            await self.take()
            await asyncio.sleep(EVERY_SECONDS)

    async def take(self) -> None:
        """Nothing depends on it: a failure is logged, and the next turn tries again."""
        try:
            async with self._database.reading() as connection:
                taken = await take_checkpoint(connection, self._clock())
            if taken.root != self._root:
                await asyncio.to_thread(_save, taken, self._folder)
                self._root = taken.root
                self._log.info("audit checkpoint", root=taken.root, chains=len(taken.ends), taken_at=taken.taken_at)
        except Exception as error:  # noqa: BLE001 - the database may be away, or may not let this login read records
            self._log.warning("no audit checkpoint", **describe_failure(error))


def _save(taken: Checkpoint, folder: Path) -> None:
    """One file a day, its last state, never half written."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder / f".{os.getpid()}.draft"
    draft.write_bytes(render(taken))
    draft.replace(folder / f"{taken.taken_at[:10]}.jsonl")
