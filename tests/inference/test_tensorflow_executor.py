from dataclasses import replace

import numpy as np
import pytest

from app.errors import InvalidSettings
from app.inference.executor import NumpyExecutor
from app.inference.tensorflow_executor import SHAPES, TensorflowExecutor, choose_device
from app.maths.gp import kernels
from app.maths.gp.posterior import HeteroscedasticPosterior, SparseGP
from app.maths.moments import Array
from tests.samples import a_posterior

pytestmark = pytest.mark.tensorflow


def people(count: int, seed: int = 3) -> Array:
    rng = np.random.default_rng(seed)
    columns = [np.log(rng.uniform(1, 90, count)), rng.integers(0, 2, count), rng.uniform(80, 200, count)]
    return np.column_stack([*columns, rng.uniform(10, 120, count)]).astype(np.float64)


def assert_same(posterior: HeteroscedasticPosterior, X: Array) -> None:
    ours, theirs = TensorflowExecutor(posterior, "CPU").predict(X), NumpyExecutor(posterior).predict(X)
    for name in ("m1", "v1", "m2", "v2"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", kernels.SHAPES)
@pytest.mark.req("REQ-024")
def test_tensorflow_gives_the_moments_of_numpy_for_every_kernel(kernel: str) -> None:
    original = a_posterior(seed=7)

    def with_kernel(gp: SparseGP) -> SparseGP:
        return replace(gp, kernel=replace(gp.kernel, name=kernel, alpha=0.7))

    assert_same(replace(original, f1=with_kernel(original.f1), f2=with_kernel(original.f2)), people(300))


@pytest.mark.parametrize("count", [0, 1, 2, 65, 16_384 + 3])
def test_the_number_of_people_changes_nothing(count: int) -> None:
    assert_same(a_posterior(), people(count))


def test_a_constant_function_needs_no_inducing_points() -> None:
    constant = SparseGP.constant("rational_quadratic", -0.3, 4)
    assert_same(replace(a_posterior(), f2=constant), people(20))


def test_every_kernel_of_the_posterior_has_a_tensorflow_shape() -> None:
    assert SHAPES.keys() == kernels.SHAPES.keys()


def test_a_gpu_that_is_not_there_is_refused_and_auto_takes_the_cpu() -> None:
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        pytest.skip("this machine has a GPU")
    with pytest.raises(InvalidSettings, match="finds no GPU"):
        choose_device("GPU")
    assert choose_device("auto") == choose_device("CPU") == "CPU"
