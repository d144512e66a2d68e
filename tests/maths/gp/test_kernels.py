import numpy as np
import pytest

from app.maths.gp.kernels import SHAPES, Kernel
from app.maths.moments import Array

LENGTHSCALES = np.array([0.7, 1.9, 3.1])


def textbook(name: str, X: Array, Z: Array, variance: float, alpha: float) -> Array:
    r2: Array = (((X[:, None, :] - Z[None, :, :]) / LENGTHSCALES) ** 2).sum(axis=-1)
    root = np.sqrt(5.0 * r2)
    correlations: dict[str, Array] = {
        "rational_quadratic": (1.0 + r2 / (2.0 * alpha)) ** -alpha,
        "rbf": np.exp(-r2 / 2.0),
        "matern52": (1.0 + root + root**2 / 3.0) * np.exp(-root),
    }
    return variance * correlations[name]


@pytest.mark.parametrize("name", SHAPES)
def test_kernels_follow_their_textbook_formulas(name: str) -> None:
    rng = np.random.default_rng(1)
    X, Z = 2.0 * rng.normal(size=(40, 3)), 2.0 * rng.normal(size=(9, 3))
    kernel = Kernel(name, 0.4, LENGTHSCALES, alpha=1.7)
    np.testing.assert_allclose(kernel.matrix(X, Z), textbook(name, X, Z, 0.4, 1.7), rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("name", SHAPES)
def test_a_person_correlates_fully_with_itself_even_far_from_the_mean(name: str) -> None:
    X = np.random.default_rng(2).normal(size=(50, 3)) * 30.0
    diagonal = np.diag(Kernel(name, 2.0, LENGTHSCALES).matrix(X, X))
    np.testing.assert_allclose(diagonal, 2.0, rtol=1e-11)


def test_rational_quadratic_with_a_large_alpha_is_the_rbf() -> None:
    X = np.random.default_rng(3).normal(size=(20, 3))
    smooth = Kernel("rational_quadratic", 1.0, LENGTHSCALES, alpha=1e7).matrix(X, X)
    np.testing.assert_allclose(smooth, Kernel("rbf", 1.0, LENGTHSCALES).matrix(X, X), atol=1e-6)


def test_an_unknown_kernel_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown kernel periodic"):
        Kernel("periodic", 1.0, LENGTHSCALES)
