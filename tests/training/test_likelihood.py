from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.training.likelihood import ConstantSpread, VaryingSpread, expected_log_density
from app.training.stack import gpflow, tfp

pytestmark = pytest.mark.gpflow

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
    likelihood = VaryingSpread()
    likelihood.freedom = 6.0
    quadrature = gpflow.likelihoods.HeteroskedasticTFPConditional(
        lambda location, scale: tfp.distributions.StudentT(np.float64(6.0), location, scale),
        quadrature=gpflow.quadrature.NDiagGHQuadrature(2, 40),
    )
    exact = quadrature.variational_expectations(X, mean, variance, y).numpy()
    bound = likelihood.variational_expectations(X, mean, variance, y).numpy()
    assert (bound < exact).all()
    density = stats.t.logpdf(y[:, 0], 6.0, loc=mean[:, 0], scale=np.exp(mean[:, 1]))
    np.testing.assert_allclose(likelihood.log_prob(X, mean, y).numpy(), density, rtol=1e-10)


def test_student_term_with_many_degrees_of_freedom_is_the_gaussian_one() -> None:
    _, mean, variance, y = latent_moments()
    terms = y[:, 0], mean[:, 0], variance[:, 0], mean[:, 1], variance[:, 1]
    np.testing.assert_allclose(expected_log_density(*terms, 1e8), expected_log_density(*terms), atol=1e-4)


@pytest.mark.parametrize(("freedom", "factor"), [(np.inf, 1.0), (6.0, 1.5)])
def test_conditional_moments_are_those_of_the_noise(freedom: float, factor: float) -> None:
    X, mean, _, _ = latent_moments()
    likelihood = VaryingSpread()
    likelihood.freedom = freedom
    np.testing.assert_allclose(likelihood.conditional_mean(X, mean), mean[:, :1])
    np.testing.assert_allclose(likelihood.conditional_variance(X, mean), factor * np.exp(2 * mean[:, 1:]))
