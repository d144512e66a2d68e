import numpy as np

from app.training.inducing import starting_points


def test_the_same_seed_gives_the_same_points_inside_the_data() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    first, second, other = (starting_points(X, 20, np.random.default_rng(seed)) for seed in (7, 7, 8))
    assert first.shape == (20, 3)
    assert (first == second).all()
    assert (first != other).any()
    assert (first.min(axis=0) >= X.min(axis=0)).all()
    assert (first.max(axis=0) <= X.max(axis=0)).all()


def test_points_spread_over_every_cluster_of_people() -> None:
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    X = np.random.default_rng(1).normal(size=(90, 2)) + np.repeat(centres, 30, axis=0)
    points = starting_points(X, 6, np.random.default_rng(2))
    distances = np.linalg.norm(points[:, None] - centres, axis=-1)
    assert set(distances.argmin(axis=1)) == {0, 1, 2}


def test_there_are_never_more_points_than_different_people() -> None:
    X = np.repeat(np.eye(3), 20, axis=0)
    points = starting_points(X, 10, np.random.default_rng(3))
    assert points.shape == (3, 3)
    assert np.isfinite(points).all()
