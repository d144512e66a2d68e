from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.maths.gp.kernels import SHAPES
from app.maths.moments import Array
from app.training.gpflow_setup import gpflow, tf, tfp
from app.training.model import (
    KERNELS,
    CollapsedSVGP,
    ConstantSpread,
    GaussianNoise,
    HeteroscedasticSVGP,
    StudentNoise,
    VaryingSpread,
    expected_log_density,
    log_sd_kernel,
    mean_kernel,
    starting_points,
    untrained,
)
from app.training.recipe import Recipe
from tests.training.problems import people, short, student_term

pytestmark = pytest.mark.gpflow


def test_prior_is_a_normal_density_of_the_logarithm_without_a_jacobian() -> None:
    kernel = log_sd_kernel(Recipe(), covariates=4)
    kernel.lengthscales.assign([0.5, 1.0, 2.0, 8.0])
    expected = stats.norm.logpdf(np.log([0.5, 1.0, 2.0, 8.0]), np.log(2.0), 0.5).sum()
    np.testing.assert_allclose(kernel.lengthscales.log_prior_density().numpy(), expected, rtol=1e-12)
    kernel.variance.assign(0.3)
    expected = stats.norm.logpdf(np.log(0.3), np.log(0.1), 0.5)
    np.testing.assert_allclose(kernel.variance.log_prior_density().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", SHAPES)
def test_kernels_start_at_the_medians_of_their_priors(name: str) -> None:
    kernel = mean_kernel(Recipe(kernel=name), covariates=9)
    np.testing.assert_allclose(kernel.lengthscales.numpy(), np.full(9, 3.0))
    np.testing.assert_allclose(kernel.variance.numpy(), 1.0)
    assert all(parameter.prior is not None for parameter in kernel.trainable_parameters)


def test_priors_can_be_left_out() -> None:
    kernel = log_sd_kernel(Recipe(priors=False), covariates=2)
    assert all(parameter.prior is None for parameter in kernel.trainable_parameters)


def test_every_shape_of_the_posterior_can_be_trained() -> None:
    assert set(KERNELS) == set(SHAPES)


def test_the_faster_rational_quadratic_equals_gpflows() -> None:
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(30, 3)), rng.normal(size=(7, 3))
    options = {"variance": 0.7, "lengthscales": [0.5, 1.0, 2.0], "alpha": 1.3}
    fast, stock = KERNELS["rational_quadratic"](**options), gpflow.kernels.RationalQuadratic(**options)
    np.testing.assert_allclose(fast(X, Z).numpy(), stock(X, Z).numpy(), rtol=1e-13)


N = 40
RNG_SEED = 0


def latent_moments() -> tuple[Any, Any, Any, Any]:
    """X, Fmu, Fvar, Y of N people."""
    rng = np.random.default_rng(RNG_SEED)
    mean, variance = rng.normal(size=(N, 2)), rng.uniform(0.01, 0.3, size=(N, 2))
    return np.zeros((N, 1)), mean, variance, rng.normal(size=(N, 1))


def test_closed_form_equals_gpflows_quadrature() -> None:
    X, mean, variance, y = latent_moments()
    quadrature = gpflow.likelihoods.HeteroskedasticTFPConditional(quadrature=gpflow.quadrature.NDiagGHQuadrature(2, 40))
    expected = quadrature.variational_expectations(X, mean, variance, y).numpy()
    got = VaryingSpread().variational_expectations(X, mean, variance, y).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_constant_spread_equals_gpflows_gaussian() -> None:
    X, mean, variance, y = latent_moments()
    gaussian = gpflow.likelihoods.Gaussian(np.exp(2 * -0.8))
    expected = gaussian.variational_expectations(X, mean[:, :1], variance[:, :1], y).numpy()
    got = ConstantSpread(-0.8).variational_expectations(X, mean[:, :1], variance[:, :1], y).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_student_term_is_a_lower_bound_that_is_exact_for_certain_functions() -> None:
    X, mean, variance, y = latent_moments()
    quadrature = gpflow.likelihoods.HeteroskedasticTFPConditional(
        lambda location, scale: tfp.distributions.StudentT(np.float64(6.0), location, scale),
        quadrature=gpflow.quadrature.NDiagGHQuadrature(2, 40),
    )
    exact = quadrature.variational_expectations(X, mean, variance, y).numpy()
    bound = student_term(y[:, 0], mean[:, 0], variance[:, 0], mean[:, 1], variance[:, 1], 6.0)
    assert (bound < exact).all()
    density = stats.t.logpdf(y[:, 0], 6.0, loc=mean[:, 0], scale=np.exp(mean[:, 1]))
    certain = student_term(y[:, 0], mean[:, 0], 0.0, mean[:, 1], 0.0, 6.0)
    np.testing.assert_allclose(certain, density, rtol=1e-10)


def test_student_term_with_many_degrees_of_freedom_is_the_gaussian_one() -> None:
    _, mean, variance, y = latent_moments()
    terms = y[:, 0], mean[:, 0], variance[:, 0], mean[:, 1], variance[:, 1]
    np.testing.assert_allclose(student_term(*terms, 1e8), expected_log_density(*terms), atol=1e-4)


def test_conditional_moments_are_those_of_the_noise() -> None:
    X, mean, _, y = latent_moments()
    likelihood = VaryingSpread()
    np.testing.assert_allclose(likelihood.conditional_mean(X, mean), mean[:, :1])
    np.testing.assert_allclose(likelihood.conditional_variance(X, mean), np.exp(2 * mean[:, 1:]))
    density = stats.norm.logpdf(y[:, 0], mean[:, 0], np.exp(mean[:, 1]))
    np.testing.assert_allclose(likelihood.log_prob(X, mean, y).numpy(), density, rtol=1e-10)


def random_model(kernel: str) -> HeteroscedasticSVGP:
    rng = np.random.default_rng(3)
    model = untrained(short(kernel=kernel), rng.normal(size=(8, 2)))
    for variable in model.trainable_variables:
        variable.assign_add(0.3 * rng.normal(size=variable.shape))
    assert isinstance(model, HeteroscedasticSVGP)
    return model


@pytest.mark.parametrize("kernel", ["rational_quadratic", "matern52"])
def test_unrolled_latent_functions_predict_what_gpflow_predicts(kernel: str) -> None:
    model = random_model(kernel)
    X = np.random.default_rng(4).normal(size=(20, 2))
    for ours, stock in zip(model.predict_f(X), gpflow.models.SVGP.predict_f(model, X), strict=True):
        np.testing.assert_allclose(ours.numpy(), stock.numpy(), rtol=0.0, atol=1e-12)


def test_full_covariances_come_from_gpflow() -> None:
    model = random_model("rbf")
    X = np.random.default_rng(5).normal(size=(6, 2))
    _, covariance = model.predict_f(X, full_cov=True)
    variance = np.diagonal(covariance.numpy(), axis1=1, axis2=2).T
    np.testing.assert_allclose(variance, model.predict_f(X)[1].numpy(), atol=1e-12)


def test_an_untrained_model_predicts_its_prior() -> None:
    model = untrained(short(start_log_sd=-1.5), np.random.default_rng(6).normal(size=(8, 2)))
    mean, variance = model.predict_f(np.zeros((1, 2)))
    np.testing.assert_allclose(mean.numpy(), [[0.0, -1.5]], atol=1e-12)
    np.testing.assert_allclose(variance.numpy(), [[1.0, 0.1]], atol=1e-12)


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


def collapsed(varying: bool, freedom: float | None = None) -> tuple[CollapsedSVGP, tuple[Array, Array]]:
    """A model with nothing special about its parameters."""
    rng = np.random.default_rng(1)
    X, y, Z = standardised()
    model = CollapsedSVGP(short(start_log_sd=-0.7), X, y, Z)
    if varying:
        model.make_heteroscedastic(short(), Z)
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
    model = CollapsedSVGP(short(start_log_sd=-1.1), X, y, Z)
    model.make_heteroscedastic(short(), Z)
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
