import numpy as np

from app.benchmark.paper.protocol import folds, inject, injected


def test_as_many_rows_as_asked_are_moved_by_between_a_tenth_and_a_half() -> None:
    y = np.linspace(0.0, 1.0, 500)
    found = injected(y, 200, seed=42)
    moved = found.y - y
    assert found.anomalous.sum() == 200
    assert np.array_equal(moved != 0.0, found.anomalous)
    sizes = np.abs(moved[found.anomalous])
    assert sizes.min() >= 0.1 - 1e-12
    assert sizes.max() <= 0.5 + 1e-12
    assert sizes.min() < 0.12
    assert sizes.max() > 0.48
    assert 60 < (moved > 0.0).sum() < 140


def test_the_caller_keeps_its_own_y() -> None:
    y = np.zeros(20)
    inject(y, 5, np.random.default_rng(0))
    assert not y.any()


def test_a_seed_gives_the_same_injection_and_another_seed_another() -> None:
    y = np.zeros(50)
    assert np.array_equal(injected(y, 5, 42).y, injected(y, 5, 42).y)
    assert not np.array_equal(injected(y, 5, 42).y, injected(y, 5, 43).y)


def test_every_row_is_tested_once_and_never_trained_on_in_the_same_fold() -> None:
    parts = list(folds(53, 42))
    assert len(parts) == 5
    assert sorted(np.concatenate([test for _, test in parts]).tolist()) == list(range(53))
    for training, test in parts:
        assert sorted(np.concatenate([training, test]).tolist()) == list(range(53))
