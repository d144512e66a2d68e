from pathlib import Path

import numpy as np

from app.benchmark.paper.choice import Judged, choose, mean_ranks
from app.benchmark.paper.protocol import Done, Task
from app.benchmark.paper.recipes import Choice
from app.benchmark.paper.runner import Report
from app.benchmark.paper.tasks import Scope, choosing
from tests.benchmark.paper.problems import small_table

CANDIDATES = (Choice("base"), Choice("reg1"), Choice("reg1t6"))


class Judge:
    """Answers inner tasks with m1 = 0: the score is |y|, better for one recipe than for the others."""

    def __init__(self, best: str) -> None:
        self.best = best
        self.tasks: list[Task] = []

    def results(self, tasks: list[Task], report: Report, what: str) -> dict[Task, Done]:
        self.tasks += tasks
        return {task: self._done(task) for task in tasks}

    def _done(self, task: Task) -> Done:
        assert task.choice is not None
        anomalous = [False, False, True, False]
        y = [0.1, 0.2, 0.9, 0.3] if task.choice.recipe == self.best else [0.1, 0.5, 0.4, 0.6]
        zero = [0.0] * 4
        return Done([0, 1, 2, 3], y, anomalous, {"m1": zero, "v1": zero, "m2": zero, "v2": zero}, 1.0, 1.0)


def test_the_recipe_with_the_best_inner_folds_wins() -> None:
    for best in ("base", "reg1", "reg1t6"):
        judge = Judge(best)
        tables = {"Yacht": small_table(), "Concrete": small_table("Concrete")}
        judged = choose(tables, Scope(candidates=CANDIDATES), judge, lambda *_: None)  # type: ignore[arg-type]
        assert judged.winner.recipe == best
        assert judged.fits == len(set(judge.tasks)) == 3 * 2 * 2 * 3
        assert all(task.inner is not None for task in judge.tasks)


def test_ranks_are_averaged_over_columns_and_ties_share_theirs() -> None:
    areas = np.array([[[0.9, 0.5]], [[0.9, 0.7]], [[0.8, 0.6]]])  # [candidates, sets, 2]
    assert mean_ranks(areas).tolist() == [(1.5 + 3) / 2, (1.5 + 1) / 2, (3 + 2) / 2]


def test_of_equal_candidates_the_earlier_wins() -> None:
    flat = np.full((3, 1), 0.5)
    judged = Judged(CANDIDATES, ("Yacht",), (0,), flat, flat, np.array([2.0, 2.0, 2.0]), 1, 1.0)
    assert judged.winner == CANDIDATES[0]


def test_a_candidate_with_nothing_to_transform_shares_the_fits_of_the_plain_one() -> None:
    table = small_table()
    assert choosing(table, Scope(), Choice("reg1", log=True)) == choosing(table, Scope(), Choice("reg1"))


def test_no_result_of_the_experiment_is_needed_for_the_choice(tmp_path: Path) -> None:
    tasks = choosing(small_table(), Scope(), Choice("reg1"))
    assert {task.inner for task in tasks} == {0, 1, 2}
    assert {task.fold for task in tasks} == {0, 1}
