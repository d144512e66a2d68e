"""The folder in which services keep their checkpoints: one file a day and database, never half written.

Several processes may share it. Each adds to what the others saw, one after the other, so that none wipes out the
evidence of another.
"""

import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.audit.checkpoint import Checkpoint, parse, remembering, render
from app.errors import InvalidCheckpoint

FOLDER = "checkpoints"
LOCK = ".lock"


def checkpoint_files(folder: Path) -> list[Path]:
    """Oldest first, one a day and database."""
    return sorted(folder.glob("*.jsonl"))


class CheckpointFolder:
    def __init__(self, path: Path, not_usable: Callable[[Exception], None]) -> None:
        self._path, self._not_usable = path, not_usable
        self._read: tuple[tuple[str, int, int], Checkpoint] | None = None  # the last one, and which file it was

    def newest(self, database: str) -> Checkpoint | None:
        """What was seen last, by whomever. A file that cannot be used is passed over: `audit verify` names it."""
        for file in sorted(self._path.glob(f"????-??-??-{_slug(database)}.jsonl"), reverse=True):
            try:
                found = self._parsed(file)
            except (OSError, InvalidCheckpoint) as error:
                self._not_usable(error)
                continue
            if found.database == database:
                return found
        return None

    def add(self, taken: Checkpoint) -> Checkpoint:
        """As it was kept: with every end that is in the folder and that the chains have no more."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(self._path / LOCK):
            before = self.newest(taken.database)
            kept = remembering(taken, before)
            if before is None or kept.root != before.root:
                self._save(kept)
        return kept

    def _save(self, kept: Checkpoint) -> None:
        draft = self._path / f".{secrets.token_hex(8)}.draft"
        try:
            with draft.open("xb") as file:
                file.write(render(kept))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path / f"{kept.taken_at[:10]}-{_slug(kept.database)}.jsonl")
        finally:
            draft.unlink(missing_ok=True)

    def _parsed(self, file: Path) -> Checkpoint:
        """Read again only if somebody wrote it: every version is a file of its own."""
        status = file.stat()
        which = (file.name, status.st_ino, status.st_mtime_ns)
        if self._read is None or self._read[0] != which:
            self._read = which, parse(file.read_bytes())
        return self._read[1]


def _slug(database: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", database)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Until the block ends, or the process, however it ends."""
    handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
