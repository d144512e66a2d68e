import numpy as np
import pytest

from app.benchmark.paper import protocol
from app.benchmark.paper.protocol import Task, folds, injected, perform
from app.maths.moments import Array
from tests.benchmark.paper.problems import line

X, Y = line(100)


class Spy:
    """Remembers what it was trained on."""

    def fit(self, X: Array, y: Array) -> None:
        self.trained = X, y

    def answer(self, X: Array, y: Array) -> dict[str, Array]:
        return {"score": y}


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    made = Spy()
    monkeypatch.setattr(protocol, "make", lambda *_: made)
    return made


def rows_of(contexts: Array) -> set[int]:
    return {int(np.flatnonzero((row == X).all(axis=1))[0]) for row in contexts}


def test_a_fold_is_fitted_without_its_test_rows_and_answers_for_them(spy: Spy) -> None:
    found = perform(Task("Yacht", 10, 42, 3, "Z-score"), X, Y)
    training, test = list(folds(100, 42))[3]
    contaminated = injected(Y, 10, 42)
    assert rows_of(spy.trained[0]) == set(training.tolist())
    assert np.array_equal(spy.trained[1], contaminated.y[training])
    assert found.rows == test.tolist()
    assert found.y == contaminated.y[test].tolist()
    assert found.anomalous == contaminated.anomalous[test].tolist()


def test_an_inner_fold_never_sees_a_test_row_of_the_experiment(spy: Spy) -> None:
    _, test = list(folds(100, 42))[1]
    for inner in range(3):
        found = perform(Task("Yacht", 10, 42, 1, "NS", inner=inner), X, Y)
        seen = rows_of(spy.trained[0]) | set(found.rows)
        assert not seen & set(test.tolist())
        assert not rows_of(spy.trained[0]) & set(found.rows)


def test_known_anomalies_go_into_inner_validation_rows_alone(spy: Spy) -> None:
    outer = injected(Y, 10, 42)
    found = perform(Task("Yacht", 10, 42, 1, "NS", inner=0), X, Y)
    assert sum(found.anomalous) == 5
    changed = np.array(found.y) != outer.y[found.rows]
    assert changed.tolist() == found.anomalous
    trained = np.array(sorted(rows_of(spy.trained[0])))
    assert sorted(spy.trained[1].tolist()) == sorted(outer.y[trained].tolist())


def test_inner_folds_share_the_rows_they_were_cut_to(spy: Spy) -> None:
    found = [perform(Task("Yacht", 10, 42, 0, "NS", inner=inner, at_most=30), X, Y) for inner in range(3)]
    assert sorted(len(one.rows) for one in found) == [10, 10, 10]
    assert len({row for one in found for row in one.rows}) == 30
