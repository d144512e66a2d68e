import numpy as np
import pytest
from numpy.typing import NDArray

from app.errors import UnverifiedResult
from app.maths.moments import Array
from app.maths.roots import increasing_root

Rows = NDArray[np.intp]


def bounds(n: int, reach: float) -> tuple[Array, Array]:
    return np.full(n, -reach), np.full(n, reach)


def test_every_function_gets_its_own_root() -> None:
    wanted = np.linspace(-3, 3, 41)

    def function(x: Array, rows: Rows) -> Array:
        return np.asarray(x**3 + x - (wanted[rows] ** 3 + wanted[rows]))

    assert increasing_root(function, np.zeros(41), *bounds(41, 10.0)) == pytest.approx(wanted, abs=1e-12)


def test_cliffs_and_plateaus_are_crossed() -> None:
    """A logarithm of a density falls off a cliff where it starts; a probability is flat in both tails."""
    wanted = np.array([-7.3, 0.001, 5.5])

    def cliff(x: Array, rows: Rows) -> Array:
        gap = x - wanted[rows]
        return np.where(gap < -0.01, -5e7, gap)

    def plateau(x: Array, rows: Rows) -> Array:
        return np.asarray(np.tanh(40 * (x - wanted[rows])))

    for function in (cliff, plateau):
        assert increasing_root(function, np.zeros(3), *bounds(3, 30.0)) == pytest.approx(wanted, abs=1e-12)


def test_a_function_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(UnverifiedResult, match="No root"):
        increasing_root(lambda x, rows: np.full_like(x, np.nan), np.zeros(2), *bounds(2, 1.0))
