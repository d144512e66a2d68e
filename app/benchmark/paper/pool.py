"""Independent tasks on all cores of this machine, or on a Dask cluster. Whatever is done is kept at once."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from app.benchmark.paper.data import Table
from app.benchmark.paper.kept import LoadedModels
from app.benchmark.paper.methods import FITTED
from app.benchmark.paper.work import Done, Task, perform
from app.errors import NormalcyError, TrainingFailed

Report = Callable[[str, float], None]
Submit = Callable[..., Any]

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
TASKS_PER_PROCESS = 60  # TensorFlow keeps some memory of every model that it has seen


class Runner:
    """Gives every task its result: from the shelf if it is there, else by doing it."""

    def __init__(self, tables: Mapping[str, Table], shelf: LoadedModels, processes: int, scheduler: str | None) -> None:
        self._tables, self._shelf = tables, shelf
        self._processes, self._scheduler = processes, scheduler

    def results(self, tasks: Sequence[Task], report: Report, what: str) -> dict[Task, Done]:
        found = {task: kept for task in tasks if (kept := self._shelf.find(task, self._digest(task))) is not None}
        missing = [task for task in dict.fromkeys(tasks) if task not in found]
        return found | self._do(missing, report, what) if missing else found

    def _do(self, tasks: Sequence[Task], report: Report, what: str) -> dict[Task, Done]:
        """A task that fails does not stop the others; it is told at the end."""
        began, total, behind = time.monotonic(), sum(map(weight, tasks)), 0.0
        done: dict[Task, Done] = {}
        failed: list[NormalcyError] = []
        report(f"{what}: {len(tasks)} tasks to do", 0.0)
        for task, outcome in self._completed(tasks):
            if isinstance(outcome, NormalcyError):
                failed.append(outcome)
            else:
                done[task] = outcome
                self._shelf.keep(task, self._digest(task), outcome)
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
