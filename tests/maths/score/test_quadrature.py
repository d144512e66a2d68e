import numpy as np
import pytest
from scipy.special import ndtr

from app.maths.score.quadrature import BLOCK, SIZES, grid, grouped, nodes_for, size_for


@pytest.mark.parametrize("steepness", [0.0, 0.3, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("c", [-3.0, 0.2, 1.5])
def test_enough_nodes_integrate_a_normal_distribution_function(steepness: float, c: float) -> None:
    """E[Phi(κZ + c)] = Phi(c/sqrt(1 + κ²))."""
    nodes = grid(size_for(nodes_for(steepness)))
    exact = ndtr(c / np.sqrt(1 + steepness**2))
    assert ndtr(steepness * nodes.z + c) @ nodes.weight == pytest.approx(exact, abs=1e-11)


def test_half_the_nodes_do_not() -> None:
    nodes = grid(size_for(nodes_for(4.0)) // 2)
    assert abs(ndtr(4.0 * nodes.z + 1.5) @ nodes.weight - ndtr(1.5 / np.sqrt(17))) > 1e-8


def test_a_size_is_never_below_the_need_and_an_eighth_above_it_at_most() -> None:
    for needed in np.linspace(18, 5000, 700):
        assert needed <= size_for(needed) <= 1.25 * needed + 2


def test_every_row_is_worked_once_in_blocks_that_fit_the_cache() -> None:
    rng = np.random.default_rng(0)
    nodes, kind = rng.uniform(18, 900, 5000), rng.integers(0, 4, 5000)
    seen = np.zeros(5000, dtype=int)
    for group in grouped(nodes, kind):
        seen[group.rows] += 1
        assert group.rows.size * group.size <= BLOCK
        assert np.all(kind[group.rows] == group.kind)
        assert np.all(nodes[group.rows] <= group.size)
    assert np.all(seen == 1)


def test_a_single_row_is_worked_even_if_its_grid_exceeds_a_block() -> None:
    (group,) = grouped(np.array([float(SIZES[-1])]), np.array([0]))
    assert group.size > BLOCK
    assert group.rows.tolist() == [0]
