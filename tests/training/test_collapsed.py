import numpy as np
import pytest

from app.maths.moments import Array
from app.training.collapsed import Collapsed
from app.training.stack import tf
from tests.training.problems import people, short

pytestmark = pytest.mark.gpflow


def standardised() -> tuple[Array, Array, Array]:
    """X, y and inducing points."""
    X, y = people()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, (y - np.median(y)) / y.std(), X[:8].copy()


def collapsed(varying: bool, freedom: float | None = None) -> tuple[Collapsed, tuple[Array, Array]]:
    """A model with nothing special about its parameters."""
    rng = np.random.default_rng(1)
    X, y, Z = standardised()
    model = Collapsed(short(start_log_sd=-0.7), X, y, Z)
    if varying:
        model.release(short(), Z)
    if freedom:
        model.make_robust(freedom)
    for variable in model.trainable_variables:
        variable.assign_add(0.1 * rng.normal(size=variable.shape))
    return model, (X, y[:, None])


@pytest.mark.parametrize("varying", [False, True])
def test_its_bound_is_the_elbo_of_the_svgp_it_stands_for(varying: bool) -> None:
    model, data = collapsed(varying)
    np.testing.assert_allclose(model.elbo().numpy(), model.as_svgp().elbo(data).numpy(), rtol=1e-10)


@pytest.mark.parametrize("varying", [False, True])
def test_no_other_q_of_f1_gives_a_higher_elbo(varying: bool) -> None:
    model, data = collapsed(varying)
    svgp = model.as_svgp()
    with tf.GradientTape() as tape:
        elbo = svgp.elbo(data)
    q_mu, q_sqrt = tape.gradient(elbo, [svgp.q_mu.unconstrained_variable, svgp.q_sqrt.unconstrained_variable])
    assert np.abs(q_mu.numpy()[:, 0]).max() < 1e-7
    assert np.abs(q_sqrt.numpy()[0]).max() < 1e-7


def test_releasing_f2_starts_where_the_constant_stood() -> None:
    X, y, Z = standardised()
    model = Collapsed(short(start_log_sd=-1.1), X, y, Z)
    model.release(short(), Z)
    m2, v2 = model.log_sd.moments(model.X)
    np.testing.assert_allclose(m2.numpy(), -1.1)
    np.testing.assert_allclose(v2.numpy(), 0.1)


@pytest.mark.parametrize("varying", [False, True])
def test_with_student_noise_it_is_below_the_svgp_with_the_student_term(varying: bool) -> None:
    model, data = collapsed(varying, freedom=6.0)
    svgp = model.as_svgp()
    svgp.likelihood.freedom = 6.0
    assert float(svgp.elbo(data)) - 1.0 < float(model.elbo()) < float(svgp.elbo(data))
