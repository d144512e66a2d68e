"""Write down, once a minute and at the end, where every chain stands: what shows later that nothing was cut off.

The root goes to the log as well. A log that is collected elsewhere is out of reach of whoever can change the database.
An end that was seen once stays in the file, also when the chain has lost it: else a minute would wipe out the evidence.
"""

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import structlog

from app.audit.checkpoint import Checkpoint, forgotten, parse, render, take_checkpoint
from app.database.engine import Database
from app.errors import CheckpointRefused
from app.observability import Metrics, describe_failure

EVERY_SECONDS = 60.0
LATE_SECONDS = 3 * EVERY_SECONDS  # without a good one: something hangs
FOLDER = "checkpoints"


class Checkpoints:
    def __init__(self, database: Database, data_dir: Path, clock: Callable[[], datetime], metrics: Metrics) -> None:
        self._database, self._folder, self._clock = database, data_dir / FOLDER, clock
        self._last: Checkpoint | None = None
        self._keeping = threading.Lock()  # a turn that was cancelled may still write when the last one begins
        self._last_good = time.monotonic()
        self._log, self._metrics = structlog.get_logger("audit"), metrics
        self.has_failed = False  # the last time
        self.lost_chains = 0  # that are gone or shorter than they were
        metrics.checkpoint_age_seconds.set_function(lambda: self.age_seconds)

    @property
    def age_seconds(self) -> float:
        """Since the last good one, or since the start."""
        return time.monotonic() - self._last_good

    @property
    def is_late(self) -> bool:
        return self.age_seconds > LATE_SECONDS

    async def run(self) -> None:
        while True:
            await self.take()
            await asyncio.sleep(EVERY_SECONDS)

    async def take(self) -> None:
        """No answer depends on it: a failure is counted and told, and the next turn tries again."""
        try:
            async with self._database.reading() as connection:
                taken = await take_checkpoint(connection, self._clock())
            await asyncio.to_thread(self._keep, taken)
        except Exception as error:  # noqa: BLE001 - the database may be away, or may not let this login read records
            self.has_failed = True
            self._metrics.checkpoint_failures.inc()
            self._log.warning("no audit checkpoint", **describe_failure(error))
        else:
            self.has_failed, self._last_good = False, time.monotonic()

    def _keep(self, taken: Checkpoint) -> None:
        with self._keeping:
            before = self._last or self._newest_of(taken.database)
            lost = forgotten(before, taken) if before else {}
            if len(lost) > self.lost_chains:
                self._log.error("audit chains lost", chains=len(lost))
            self.lost_chains = len(lost)
            kept = replace(taken, ends={**taken.ends, **lost})
            if self._last is None or kept.root != self._last.root:
                _save(kept, self._folder)
                self._log.info("audit checkpoint", root=kept.root, chains=len(kept.ends), taken_at=kept.taken_at)
            self._last = kept

    def _newest_of(self, database: str) -> Checkpoint | None:
        """What an earlier process saw. A file that cannot be used is passed over: `audit verify` names it."""
        for file in reversed(checkpoint_files(self._folder)):
            try:
                found = parse(file.read_bytes())
            except (OSError, CheckpointRefused) as error:
                self._log.warning("checkpoint not usable", **describe_failure(error))
                continue
            if found.database == database:
                return found
        return None


def checkpoint_files(folder: Path) -> list[Path]:
    """Oldest first, one a day and database."""
    return sorted(folder.glob("*.jsonl"))


def _save(taken: Checkpoint, folder: Path) -> None:
    """One file a day and database, its last state, never half written."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder / f".{os.getpid()}.draft"
    with draft.open("wb") as file:
        file.write(render(taken))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / f"{taken.taken_at[:10]}-{re.sub(r'[^A-Za-z0-9]+', '-', taken.database)}.jsonl")
