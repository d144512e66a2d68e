import numpy as np
import pytest

from app.benchmark.paper import attempts
from app.benchmark.paper.recipes import Choice
from app.benchmark.paper.work import Done, Task
from app.errors import TrainingFailed
from app.maths.moments import Array
from tests.benchmark.paper.problems import line

X, Y = line()
TASK = Task("Yacht", 6, 42, 0, "NS_hom", Choice("reg1"))


def fails_above(share: float, asked: list[float]):  # type: ignore[no-untyped-def]
    def perform(task: Task, X: Array, y: Array) -> Done:
        assert task.choice is not None
        asked.append(task.choice.inducing_share)
        if task.choice.inducing_share > share:
            raise np.linalg.LinAlgError("3-th leading minor of the array is not positive definite")
        return Done([0], [0.0], [False], {"score": [1.0]}, 1.0, 1.0)

    return perform


def test_a_fit_without_a_model_is_done_again_with_fewer_points_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(attempts, "perform", fails_above(0.035, asked))
    done = attempts.attempt(TASK, X, Y)
    assert asked == pytest.approx([0.05, 0.04, 0.03])
    (note,) = done.notes
    assert note.startswith("with 60% of the inducing points, after LinAlgError: 3-th leading minor")


def test_a_good_fit_is_done_once_and_has_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(attempts, "perform", fails_above(1.0, asked))
    assert attempts.attempt(TASK, X, Y).notes == []
    assert asked == [0.05]


def test_what_never_fits_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "perform", fails_above(0.0, []))
    with pytest.raises(TrainingFailed, match="NS_hom on Yacht, injection 42, fold 0: LinAlgError"):
        attempts.attempt(TASK, X, Y)
