import numpy as np
import pytest
from scipy import stats

from app.maths.gp.kernels import SHAPES
from app.training.prior import KERNELS, log_sd_kernel, mean_kernel
from app.training.recipe import Recipe
from app.training.stack import gpflow

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
