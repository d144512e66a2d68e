import os
from pathlib import Path

import pytest

from app.benchmark.paper import runner
from app.benchmark.paper.protocol import Task, perform
from app.benchmark.paper.runner import ResultStore, Runner
from app.errors import TrainingFailed
from tests.benchmark.paper.problems import small_table

TABLES = {"Yacht": small_table()}
TASKS = [Task("Yacht", 6, 42, fold, method) for method in ("Z-score", "Altman") for fold in range(3)]


def silent(what: str, share: float) -> None:
    pass


def test_tasks_run_in_other_processes_and_are_stored(tmp_path: Path) -> None:
    shares: list[float] = []
    running = Runner(TABLES, ResultStore(tmp_path), processes=2, scheduler=None)
    results = running.results(TASKS, lambda _, share: shares.append(share), "test")
    here = perform(TASKS[4], *(TABLES["Yacht"].X, TABLES["Yacht"].y))
    assert set(results) == set(TASKS)
    assert results[TASKS[4]].answer == here.answer
    assert shares[-1] == pytest.approx(1.0)
    assert all(os.environ[name] == "1" for name in runner.ONE_THREAD)
    assert len(list(tmp_path.rglob("*.json"))) == len(TASKS)


def test_more_tasks_than_a_process_may_do_are_done_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "TASKS_PER_PROCESS", 2)
    results = Runner(TABLES, ResultStore(tmp_path), processes=1, scheduler=None).results(TASKS[:5], silent, "test")
    assert set(results) == set(TASKS[:5])


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Runner(TABLES, ResultStore(tmp_path), 1, None)
    asked: list[Task] = []

    def in_place(self: Runner, tasks: list[Task], *_: object) -> dict[Task, object]:
        asked.extend(tasks)
        return dict.fromkeys(tasks)

    for task in TASKS[:4]:
        ResultStore(tmp_path).save(task, "d1", perform(task, TABLES["Yacht"].X, TABLES["Yacht"].y))
    monkeypatch.setattr(Runner, "_do", in_place)
    assert set(running.results(TASKS, silent, "test")) == set(TASKS)
    assert asked == TASKS[4:]


def test_a_failing_task_does_not_lose_the_others(tmp_path: Path) -> None:
    class Now:
        """Does the work where it stands."""

        def __init__(self, task: Task, *columns: object) -> None:
            self.task, self.columns = task, columns

        def result(self) -> object:
            if self.task == TASKS[1]:
                raise TrainingFailed("In the stage 'x' the objective is not a finite number.")
            return perform(self.task, *self.columns)  # type: ignore[arg-type]

    class Here(Runner):
        def _executor(self):  # type: ignore[no-untyped-def]
            from contextlib import nullcontext

            return nullcontext((lambda _, *work: Now(*work), iter))

    with pytest.raises(TrainingFailed, match="1 of 6 tasks failed, the first so: In the stage 'x'"):
        Here(TABLES, ResultStore(tmp_path), 1, None).results(TASKS, silent, "test")
    assert len(list(tmp_path.rglob("*.json"))) == len(TASKS) - 1


def test_a_dask_cluster_gives_the_same_results(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        found = Runner(TABLES, ResultStore(tmp_path), 1, cluster.scheduler_address).results(TASKS[:2], silent, "test")
    assert found[TASKS[0]].answer == perform(TASKS[0], TABLES["Yacht"].X, TABLES["Yacht"].y).answer
