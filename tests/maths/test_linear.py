import numpy as np
import pytest

from app.maths.moments import Array
from app.maths.statistics import LinearReference, fit_linear


def people(n: int, seed: int) -> tuple[Array, Array]:
    """Two covariates; the spread grows with the first of them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0.0, 4.0, n), rng.normal(size=n)])
    noise = rng.normal(size=n) * (0.5 + X[:, 0])
    return X, X @ np.array([3.0, -1.5]) + 20.0 + noise


def test_coefficients_solve_the_normal_equations() -> None:
    X, y = people(200, 1)
    design = np.column_stack([np.ones(200), X])
    expected = np.linalg.solve(design.T @ design, design.T @ y)
    np.testing.assert_allclose(fit_linear(X, y).coefficients, expected, rtol=1e-10)


def test_linear_z_has_unit_mean_square_on_the_training_people() -> None:
    X, y = people(50, 2)
    z = fit_linear(X, y).linear_z(X, y)
    assert np.mean(z**2) == pytest.approx(1.0, rel=1e-12)
    assert np.mean(z) == pytest.approx(0.0, abs=1e-12)


def test_altman_finds_the_spread_of_each_context() -> None:
    X, y = people(200_000, 3)
    reference = fit_linear(X, y)
    contexts = np.array([[0.5, 0.0], [2.0, 1.0], [3.5, -1.0]])
    np.testing.assert_allclose(reference.altman_sd(contexts), [1.0, 2.5, 4.0], rtol=0.02)


def test_altman_z_divides_by_the_spread_of_the_context() -> None:
    reference = LinearReference(np.array([10.0, 2.0]), 1.5, np.array([1.0, 0.5]) * np.sqrt(2.0 / np.pi))
    X, y = np.array([[0.0], [2.0]]), np.array([12.0, 18.0])
    np.testing.assert_allclose(reference.altman_z(X, y), [2.0, 2.0])
    np.testing.assert_allclose(reference.linear_z(X, y), [2.0 / 1.5, 4.0 / 1.5])


def test_altman_does_not_apply_below_a_quarter_of_the_overall_spread() -> None:
    per_sd = np.sqrt(2.0 / np.pi)
    reference = LinearReference(np.array([0.0, 0.0]), 4.0, np.array([0.0, per_sd]))
    contexts = np.array([[-3.0], [0.99], [1.01], [4.0]])
    assert reference.altman_applies(contexts).tolist() == [False, False, True, True]


def test_a_perfect_collinearity_still_predicts() -> None:
    X, y = people(100, 4)
    doubled = np.column_stack([X, X[:, 0]])
    np.testing.assert_allclose(fit_linear(doubled, y).expected(doubled), fit_linear(X, y).expected(X), rtol=1e-9)
