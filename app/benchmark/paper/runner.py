"""Runs independent tasks on all cores of this machine, or on a Dask cluster. Every result is stored at once.

A run that was stopped goes on where it stopped, and nothing stale is read: the name of a stored result holds a digest
of the task, the recipe, the data and the code that answered it.
"""

import ast
import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec

import app
from app.benchmark.paper.data import Table
from app.benchmark.paper.protocol import FITTED, Done, Task, module_of, perform
from app.benchmark.report_header import git, installed_version, processor
from app.build_info import source_commit
from app.errors import NormalcyError, TrainingFailed
from app.files import replace_file

ROOT = Path(app.__file__).parent.parent
# A digest follows imports into these packages. Words of errors and the fields of a model's card do not count: a fit
# fills a card's record and reads no number from it.
PACKAGES = ("app.benchmark.paper", "app.domain", "app.maths", "app.training")
NOT_IN_THE_DIGEST = ("app.domain.card",)
PROTOCOL = "app.benchmark.paper.protocol"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "tensorflow", "gpflow", "pyod", "quantile-forest")
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
TASKS_PER_PROCESS = 60  # TensorFlow holds on to some memory of every model that it has seen

Report = Callable[[str, float], None]
Submit = Callable[..., Any]


@cache
def code_digest(*modules: str) -> str:
    """SHA-256 of the modules and of all that they import, directly or not, without comments, docstrings and layout."""
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found or name in NOT_IN_THE_DIGEST or not name.startswith(PACKAGES):
            continue
        tree = ast.parse(_file(name).read_text(encoding="utf-8"))
        waiting += _imported(tree)
        found[name] = ast.dump(_without_docstrings(tree))
    return hashlib.sha256("\n".join(f"{name} {found[name]}" for name in sorted(found)).encode()).hexdigest()


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            inside = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in inside if _file(name).is_file())


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return tree


@cache
def origin() -> dict[str, str]:
    """Where and with what a result is made: code, libraries, kind of machine. No host name, no path.

    The commit ends in `-dirty` where the source tree had changes that it does not hold.
    """
    dirty = "-dirty" if git("status", "--porcelain") else ""
    versions = {name: installed_version(name) for name in LIBRARIES}
    return {"commit": source_commit() + dirty, "machine": processor(), "python": platform.python_version()} | versions


@dataclass(frozen=True, slots=True)
class ResultStore:
    """Results of finished tasks, a file each."""

    folder: Path

    def find(self, task: Task, data_digest: str) -> Done | None:
        path = self._path(task, data_digest)
        return msgspec.json.decode(path.read_bytes(), type=_Record).result if path.is_file() else None

    def save(self, task: Task, data_digest: str, result: Done) -> None:
        path = self._path(task, data_digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(_Record(task.as_dict(), data_digest, origin(), result)))

    def origins(self, tasks: list[tuple[Task, str]]) -> list[dict[str, str]]:
        """The different circumstances in which these tasks were done."""
        paths = {self._path(*one) for one in tasks}
        found = [msgspec.json.decode(path.read_bytes(), type=_Record).origin for path in paths if path.is_file()]
        return [dict(pairs) for pairs in sorted({tuple(sorted(one.items())) for one in found})]

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
    parts = [task.as_dict(), data_digest, code_digest(PROTOCOL, module_of(task.method))]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


class Runner:
    """Gives every task its result: from the store if it is there, else by running it."""

    def __init__(self, tables: Mapping[str, Table], store: ResultStore, processes: int, scheduler: str | None) -> None:
        self._tables, self._store = tables, store
        self._processes, self._scheduler = processes, scheduler

    def results(self, tasks: Sequence[Task], report: Report, what: str) -> dict[Task, Done]:
        found = {task: stored for task in tasks if (stored := self._store.find(task, self._digest(task))) is not None}
        missing = [task for task in dict.fromkeys(tasks) if task not in found]
        return found | self._do(missing, report, what) if missing else found

    def _do(self, tasks: Sequence[Task], report: Report, what: str) -> dict[Task, Done]:
        """A task that fails does not stop the others; it is reported at the end."""
        began, total, behind = time.monotonic(), sum(map(weight, tasks)), 0.0
        done: dict[Task, Done] = {}
        failed: list[NormalcyError] = []
        report(f"{what}: {len(tasks)} tasks to do", 0.0)
        for task, outcome in self._completed(tasks):
            if isinstance(outcome, NormalcyError):
                failed.append(outcome)
            else:
                done[task] = outcome
                self._store.save(task, self._digest(task), outcome)
            behind += weight(task)
            left = (time.monotonic() - began) * (total - behind) / behind / 60.0
            report(f"{what}: {len(done)} of {len(tasks)}, about {left:.0f} min left", behind / total)
        if failed:
            raise TrainingFailed(f"{len(failed)} of {len(tasks)} tasks failed, the first so: {failed[0]}")
        return done

    def _completed(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done | NormalcyError]]:
        """As they end. The processes are new for every stretch of tasks: the pool's own way to renew them, one by one,
        comes to a standstill in Python 3.11."""
        stretch = self._processes * TASKS_PER_PROCESS
        for start in range(0, len(tasks), stretch):
            with self._executor() as (submit, completed):
                part = tasks[start : start + stretch]
                waiting = {submit(perform, task, *self._columns(task)): task for task in part}
                for future in completed(list(waiting)):
                    try:
                        yield waiting[future], future.result()
                    except NormalcyError as error:
                        yield waiting[future], error

    def _columns(self, task: Task) -> tuple[Any, Any]:
        table = self._tables[task.dataset]
        return table.X, table.y

    def _digest(self, task: Task) -> str:
        return self._tables[task.dataset].digest

    @contextmanager
    def _executor(self) -> Iterator[tuple[Submit, Callable[[list[Any]], Iterator[Any]]]]:
        for name in ONE_THREAD:  # read by the libraries of the new processes; two fits share no core then
            os.environ[name] = "1"
        if self._scheduler is None:
            with _local(self._processes) as pool:
                yield pool.submit, as_completed
            return
        import distributed

        with distributed.Client(self._scheduler) as client:
            yield (lambda *work: client.submit(*work, pure=False)), distributed.as_completed


@contextmanager
def _local(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Spawned, because TensorFlow does not survive a fork. What waits is dropped when the run is stopped."""
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def weight(task: Task) -> float:
    """Roughly the seconds that a task takes: only for the time left."""
    if task.method not in FITTED or task.choice is None:
        return 0.5
    rows = 80.0 if task.dataset == "Abalone" and task.inner is None else 6.0
    return float(rows * (task.choice.inducing_share / 0.05) ** 1.5)
