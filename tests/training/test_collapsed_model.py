import numpy as np
import pytest

from app.maths.moments import Array
from app.training.collapsed_model import Collapsed, GaussianNoise, StudentNoise
from app.training.gpflow_setup import tf
from app.training.model import expected_log_density
from tests.training.problems import people, short, student_term

pytestmark = pytest.mark.gpflow


FREEDOM = 6.0
M2 = np.linspace(-1.0, 1.0, 30)
SQUARES = np.geomspace(0.01, 100.0, 30)  # T: y - m1 = √T e^{m2}, v1 = v2 = 0


def data_term(noise: GaussianNoise | StudentNoise) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    free, weight = noise.terms(tf.constant(M2))
    return np.asarray(free - 0.5 * weight * SQUARES)


def moments() -> tuple[Array, float, float, Array, Array]:
    """y, m1, v1, m2, v2"""
    return np.sqrt(SQUARES) * np.exp(M2), 0.0, 0.0, M2, np.zeros(30)


def test_gaussian_noise_is_the_gaussian_term() -> None:
    np.testing.assert_allclose(data_term(GaussianNoise()), expected_log_density(*moments()), rtol=1e-12)


def test_student_tangents_touch_the_student_term_where_they_are_drawn() -> None:
    np.testing.assert_allclose(data_term(StudentNoise(FREEDOM, SQUARES)), student_term(*moments(), FREEDOM), rtol=1e-12)


def test_student_tangents_lie_below_the_student_term_elsewhere() -> None:
    for factor in (0.5, 1.1, 10.0):
        assert (data_term(StudentNoise(FREEDOM, factor * SQUARES)) < student_term(*moments(), FREEDOM)).all()


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
    X, y = data
    mean, variance = (part.numpy() for part in svgp.predict_f(X))
    m2, v2 = svgp.likelihood.log_sd(mean, variance)
    terms = student_term(y[:, 0], mean[:, 0], variance[:, 0], np.asarray(m2), np.asarray(v2), 6.0)
    elbo = terms.sum() - float(svgp.prior_kl())
    assert elbo - 1.0 < float(model.elbo()) < elbo
