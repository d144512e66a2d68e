"""Write down, once a minute and at the end, where every chain stands: what shows later that nothing was cut off.

The root goes to the log as well. A log that is collected elsewhere is out of reach of whoever can change the database.
An end that was seen once stays in the file, also when the chain has lost it: else a minute would wipe out the evidence.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import structlog

from app.audit.checkpoint import Checkpoint, forgotten, remembering, take_checkpoint
from app.database.engine import Database
from app.database.records import database_name
from app.observability import Metrics, describe_failure
from app.runtime.checkpoint_folder import FOLDER, CheckpointFolder

EVERY_SECONDS = 60.0
LATE_SECONDS = 3 * EVERY_SECONDS  # without a good one: something hangs


class Checkpoints:
    def __init__(self, database: Database, data_dir: Path, clock: Callable[[], datetime], metrics: Metrics) -> None:
        self._database, self._clock = database, clock
        self._folder = CheckpointFolder(data_dir / FOLDER, self._passed_over)
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
            before = await self._seen_before()
            async with self._database.reading() as connection:
                taken = await take_checkpoint(connection, self._clock())
            await asyncio.to_thread(self._keep, taken, before)
        except Exception as error:  # noqa: BLE001 - the database may be away, or may not let this login read records
            self.has_failed = True
            self._metrics.checkpoint_failures.inc()
            self._log.warning("no audit checkpoint", **describe_failure(error))
        else:
            self.has_failed, self._last_good = False, time.monotonic()

    async def _seen_before(self) -> Checkpoint | None:
        """By this process or another. Read before the chains are, so that chains that only grow are never shorter."""
        async with self._database.reading() as connection:
            name = await database_name(connection)
        return await asyncio.to_thread(self._newest, name)

    def _newest(self, database: str) -> Checkpoint | None:
        with self._keeping:
            return self._folder.newest(database)

    def _keep(self, taken: Checkpoint, before: Checkpoint | None) -> None:
        with self._keeping:
            seen = remembering(taken, self._last, before)
            lost = len(forgotten(seen, taken))
            if lost > self.lost_chains:
                self._log.error("audit chains lost", chains=lost)
            self.lost_chains = lost
            kept = self._folder.add(seen)
            if self._last is None or kept.root != self._last.root:
                self._log.info("audit checkpoint", root=kept.root, chains=len(kept.ends), taken_at=kept.taken_at)
            self._last = kept

    def _passed_over(self, error: Exception) -> None:
        self._log.warning("checkpoint not usable", **describe_failure(error))
