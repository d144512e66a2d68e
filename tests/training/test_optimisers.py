import numpy as np
import pytest

from app.maths.gp.posterior import Scaling
from app.training.gpflow_setup import tf
from app.training.model import untrained
from app.training.optimisers import minimise_by_lbfgs, minimise_by_paper
from tests.training.problems import people, short

pytestmark = pytest.mark.gpflow


def test_it_comes_back_from_a_step_beyond_the_numbers_range() -> None:
    x = tf.Variable(np.array([0.3]))

    # Finite up to 1 only; the first step from 0.3 goes beyond.
    def loss() -> object:
        return tf.reduce_sum(-100.0 * tf.math.log(1.0 - x) - 300.0 * x)

    outcome = minimise_by_lbfgs(loss, [x], 50, lambda fraction, objective: None)
    np.testing.assert_allclose(x.numpy(), 2.0 / 3.0, rtol=1e-4)
    assert outcome.evaluations > outcome.iterations


def test_it_comes_back_from_a_matrix_without_a_cholesky_factor() -> None:
    x = tf.Variable(np.array([0.1]))

    def loss() -> object:
        root = tf.linalg.cholesky([[1.0 - x[0], 0.0], [0.0, 1.0]])
        return -2000.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root))) - 3000.0 * x[0]

    minimise_by_lbfgs(loss, [x], 50, lambda fraction, objective: None)
    np.testing.assert_allclose(x.numpy(), 2.0 / 3.0, rtol=1e-4)


def test_a_refused_step_does_not_pass_for_convergence() -> None:
    point = tf.Variable(np.array([-1.5, 2.0]))

    # Rosenbrock's valley with a wall beside it: the first line search ends in front of the wall, far from (1, 1).
    def loss() -> object:
        above = point[1] - point[0] ** 2
        inside = tf.where(above < 0.01, tf.ones_like(above), np.nan * tf.ones_like(above))
        return inside * 1e4 * (100.0 * above**2 + (1.0 - point[0]) ** 2)

    minimise_by_lbfgs(loss, [point], 200, lambda fraction, objective: None)
    np.testing.assert_allclose(point.numpy(), [1.0, 1.0], atol=1e-2)


def test_a_start_without_a_finite_objective_is_an_error() -> None:
    x = tf.Variable(np.array([2.0]))
    with pytest.raises(FloatingPointError):
        minimise_by_lbfgs(lambda: tf.reduce_sum(tf.math.log(1.0 - x)), [x], 5, lambda fraction, objective: None)


def test_it_reports_a_rising_objective() -> None:
    x = tf.Variable(np.full(3, 4.0))
    seen: list[tuple[float, float]] = []
    scale = np.array([1.0, 10.0, 100.0])
    minimise_by_lbfgs(lambda: tf.reduce_sum(scale * x**2), [x], 30, lambda *step: seen.append(step))
    fractions, objectives = zip(*seen, strict=True)
    assert list(fractions) == sorted(fractions)
    assert list(objectives) == sorted(objectives)
    np.testing.assert_allclose(objectives[-1], 0.0, atol=1e-4)


def test_every_parameter_moves_and_the_objective_rises() -> None:
    X, y = people()
    scaling = Scaling.of(X, y)
    contexts = scaling.standardise(X)
    model = untrained(short(start_log_sd=-0.7, heteroscedastic=False), contexts[:8])
    before = [variable.numpy() for variable in model.trainable_variables]
    loss = model.training_loss_closure((contexts, scaling.standardise_y(y)[:, None]), compile=False)
    start, seen = -float(loss()), list[tuple[float, float]]()
    outcome = minimise_by_paper(model, loss, 150, lambda *step: seen.append(step))
    assert [fraction for fraction, _ in seen] == [100 / 150, 1.0]
    assert start < seen[0][1] < seen[1][1]
    assert (outcome.iterations, outcome.evaluations) == (150, 300)
    for old, variable in zip(before, model.trainable_variables, strict=True):
        assert (old != variable.numpy()).any(), variable.name
    assert np.isfinite(float(loss()))
