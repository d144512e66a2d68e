"""Checkpoints that the service takes itself, once a minute and when it stops, to show later that no record was removed.

A checkpoint holds the end of every audit chain. Its root also goes to the log, because a log collected elsewhere is out
of reach of whoever can change the database. Each database has one file a day in `<data folder>/checkpoints`. Several
processes may share that folder: each adds to what the others saw. An end that was seen once stays in the file even if
the chain has lost it, otherwise the next checkpoint would erase the evidence.
"""

import asyncio
import fcntl
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from uuid import UUID

import structlog

from app.audit.author import FOLDER, signed_files
from app.audit.checkpoint import Checkpoint, lost_ends, parse, render, take_checkpoint, with_lost_ends
from app.audit.signing_key import PublicKey
from app.audit.verify_signatures import retired_ends
from app.database.engine import Database
from app.database.records import ChainHead, database_name
from app.errors import InvalidCheckpoint
from app.files import replace_file
from app.observability import Metrics, describe_failure

INTERVAL_SECONDS = 60.0
LATE_SECONDS = 3 * INTERVAL_SECONDS  # without a successful checkpoint
LOCK = ".lock"


def checkpoint_files(folder: Path) -> list[Path]:
    """Those without signatures, oldest first."""
    return sorted(set(folder.glob("*.jsonl")) - set(signed_files(folder)))


class Checkpoints:
    """Takes checkpoints in the background, and knows whether that works."""

    def __init__(
        self,
        database: Database,
        data_dir: Path,
        clock: Callable[[], datetime],
        metrics: Metrics,
        keys: Sequence[PublicKey] = (),
    ) -> None:
        """`keys`: those that this installation trusts; they sign that months are retired."""
        self._database, self._clock, self._keys = database, clock, keys
        self._retired: dict[UUID, ChainHead] = {}
        self._log, self._metrics = structlog.get_logger("audit"), metrics
        self._folder = CheckpointFolder(data_dir / FOLDER, self._log_unusable)
        self._last: Checkpoint | None = None
        self._saving = threading.Lock()  # a cancelled `take` may still be saving when the final one starts
        self._last_success = time.monotonic()
        self.has_failed = False  # the last time
        self.lost_chains = 0  # missing, or shorter than they were
        metrics.checkpoint_age_seconds.set_function(lambda: self.age_seconds)

    @property
    def age_seconds(self) -> float:
        """Since the last successful checkpoint, or since the start."""
        return time.monotonic() - self._last_success

    @property
    def is_late(self) -> bool:
        return self.age_seconds > LATE_SECONDS

    async def run(self) -> None:
        while True:
            await self.take()
            await asyncio.sleep(INTERVAL_SECONDS)

    async def take(self) -> None:
        """Never raises, because no answer depends on it. A failure is logged and counted; the next run tries again."""
        try:
            before = await self._latest()
            async with self._database.reading() as connection:
                taken = replace(await take_checkpoint(connection, self._clock()), retired=self._retired)
                if lost_ends(with_lost_ends(taken, self._last, before), taken):  # lost, or retired since the last time
                    self._retired = await retired_ends(connection, self._keys)
                    taken = replace(taken, retired=self._retired)
            await asyncio.to_thread(self._save, taken, before)
        except Exception as error:  # noqa: BLE001 - the database may be unavailable, or this login may not read records
            self.has_failed = True
            self._metrics.checkpoint_failures.inc()
            self._log.warning("no audit checkpoint", **describe_failure(error))
        else:
            self.has_failed, self._last_success = False, time.monotonic()

    async def _latest(self) -> Checkpoint | None:
        """Of any process. Read before the chains, so that a chain which only grows can never look shorter."""
        async with self._database.reading() as connection:
            name = await database_name(connection)
        return await asyncio.to_thread(self._read_latest, name)

    def _read_latest(self, database: str) -> Checkpoint | None:
        with self._saving:
            return self._folder.latest(database)

    def _save(self, taken: Checkpoint, before: Checkpoint | None) -> None:
        with self._saving:
            merged = with_lost_ends(taken, self._last, before)
            lost = len(lost_ends(merged, taken))
            if lost > self.lost_chains:
                self._log.error("audit chains lost", chains=lost)
            self.lost_chains = lost
            saved = self._folder.add(merged)
            if self._last is None or saved.root != self._last.root:
                self._log.info("audit checkpoint", root=saved.root, chains=len(saved.ends), taken_at=saved.taken_at)
            self._last = saved

    def _log_unusable(self, error: Exception) -> None:
        self._log.warning("checkpoint not usable", **describe_failure(error))


class CheckpointFolder:
    def __init__(self, path: Path, on_unusable: Callable[[Exception], None]) -> None:
        self._path, self._on_unusable = path, on_unusable
        self._parsed: tuple[tuple[str, int, int], Checkpoint] | None = None  # the last file read, and its identity

    def latest(self, database: str) -> Checkpoint | None:
        """Of any process. A file that cannot be used is skipped; `normalcy audit verify` names it."""
        for file in sorted(self._path.glob(f"????-??-??-{_slug(database)}.jsonl"), reverse=True):
            try:
                checkpoint = self._parse(file)
            except (OSError, InvalidCheckpoint) as error:
                self._on_unusable(error)
                continue
            if checkpoint.database == database:
                return checkpoint
        return None

    def add(self, taken: Checkpoint) -> Checkpoint:
        """Save it together with every end in the folder that the chains have lost. Returns what was saved."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(self._path / LOCK):
            before = self.latest(taken.database)
            merged = with_lost_ends(taken, before)
            if before is None or merged.root != before.root:
                name = f"{merged.taken_at[:10]}-{_slug(merged.database)}.jsonl"
                replace_file(self._path / name, render(merged))
        return merged

    def _parse(self, file: Path) -> Checkpoint:
        """Parses a file only if it has changed: every save makes a new inode."""
        status = file.stat()
        identity = (file.name, status.st_ino, status.st_mtime_ns)
        if self._parsed is None or self._parsed[0] != identity:
            self._parsed = identity, parse(file.read_bytes())
        return self._parsed[1]


def _slug(database: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", database)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Released when the block ends, or the process, however it ends."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
