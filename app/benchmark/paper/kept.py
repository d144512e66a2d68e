"""Finished tasks as files: a run that was stopped goes on where it stopped, and nothing stale is read.

The name of a file holds a digest of the task, the recipe, the data and the code that answered it.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from app.benchmark.paper.code_digest import code_digest
from app.benchmark.paper.methods import module_of
from app.benchmark.paper.origin import origin
from app.benchmark.paper.work import Done, Task

WORK = "app.benchmark.paper.work"


@dataclass(frozen=True, slots=True)
class LoadedModels:
    folder: Path

    def find(self, task: Task, data_digest: str) -> Done | None:
        path = self._path(task, data_digest)
        return msgspec.json.decode(path.read_bytes(), type=_Record).result if path.is_file() else None

    def keep(self, task: Task, data_digest: str, result: Done) -> None:
        """Whole or not at all: a reader never meets half a file."""
        path = self._path(task, data_digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.part")
        partial.write_bytes(msgspec.json.encode(_Record(task.as_dict(), data_digest, origin(), result)))
        os.replace(partial, path)

    def origins(self, tasks: list[tuple[Task, str]]) -> list[dict[str, str]]:
        """The different circumstances in which these tasks were done."""
        paths = {self._path(*one) for one in tasks}
        stamps = [msgspec.json.decode(path.read_bytes(), type=_Record).origin for path in paths if path.is_file()]
        return [dict(pairs) for pairs in sorted({tuple(sorted(stamp.items())) for stamp in stamps})]

    def _path(self, task: Task, data_digest: str) -> Path:
        kind = task.method if task.inner is None else f"{task.method}-inner{task.inner}"
        name = f"{kind}-{task.seed}-{task.fold}-{_key(task, data_digest)[:16]}.json"
        return self.folder / task.dataset / name


@dataclass(frozen=True, slots=True)
class _Record:
    task: dict[str, Any]
    data: str
    origin: dict[str, str]
    result: Done


def _key(task: Task, data_digest: str) -> str:
    parts = [task.as_dict(), data_digest, code_digest(WORK, module_of(task.method))]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()
