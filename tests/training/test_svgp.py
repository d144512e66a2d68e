import numpy as np
import pytest

from app.training.stack import gpflow
from app.training.svgp import HeteroscedasticSVGP, untrained
from tests.training.problems import short

pytestmark = pytest.mark.gpflow


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
