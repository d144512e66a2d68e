import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from app.maths.gp.kernels import SHAPES, Kernel
from app.maths.gp.posterior import BLOCK_ROWS, HeteroscedasticPosterior, Scaling, SparseGP
from app.maths.moments import Array

D, M, JITTER = 3, 12, 1e-6
UNIT = Scaling(np.zeros(D), np.ones(D), 0.0, 1.0)
MM = Scaling(np.array([3.0, 0.5, 170.0]), np.array([0.6, 0.5, 9.0]), 33.0, 3.5)


def latent_inputs(rng: np.random.Generator, name: str, width: float) -> tuple[Kernel, float, Array, Array, Array]:
    kernel = Kernel(name, rng.uniform(0.1, 2.0), rng.uniform(0.8, 2.5, D), alpha=rng.uniform(0.5, 3.0))
    q_sqrt = width * np.tril(rng.normal(size=(M, M)))
    return kernel, rng.normal(), rng.normal(size=(M, D)), rng.normal(size=M), q_sqrt


def random_posterior(name: str, scaling: Scaling = UNIT, seed: int = 0) -> HeteroscedasticPosterior:
    rng = np.random.default_rng(seed)
    return HeteroscedasticPosterior(
        scaling, *(SparseGP.whitened(*latent_inputs(rng, name, 0.2), jitter=JITTER) for _ in range(2))
    )


def textbook(kernel: Kernel, mean: float, Z: Array, q_mu: Array, q_sqrt: Array, X: Array) -> tuple[Array, Array]:
    """Mean and variance of an unwhitened sparse GP with u ~ N(L q_mu, L S Lᵀ), by plain inverses."""
    Kuu = kernel.matrix(Z, Z) + JITTER * np.eye(M)
    L = np.linalg.cholesky(Kuu)
    u, covariance = L @ q_mu, L @ q_sqrt @ q_sqrt.T @ L.T
    A = kernel.matrix(X, Z) @ np.linalg.inv(Kuu)
    variance = kernel.variance - np.einsum("nm,mk,nk->n", A, Kuu - covariance, A)
    return mean + A @ u, variance


@pytest.mark.parametrize("width", [0.0, 0.2, 3.0])  # certain, narrower than the prior, wider than it
@pytest.mark.parametrize("name", SHAPES)
def test_prediction_follows_the_textbook_formula(name: str, width: float) -> None:
    rng = np.random.default_rng(5)
    inputs = [latent_inputs(rng, name, width) for _ in range(2)]
    posterior = HeteroscedasticPosterior(UNIT, *(SparseGP.whitened(*each, jitter=JITTER) for each in inputs))
    X = 1.5 * rng.normal(size=(60, D))
    moments = posterior.predict(X)
    expected = [*textbook(*inputs[0], X), *textbook(*inputs[1], X)]
    for got, want in zip((moments.m1, moments.v1, moments.m2, moments.v2), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_moments_carry_the_units_of_the_diameter() -> None:
    X = np.random.default_rng(1).normal(size=(20, D))
    unit, mm = random_posterior("rbf"), random_posterior("rbf", MM)
    plain, scaled = unit.predict(X), mm.predict(MM.x_mean + MM.x_sd * X)
    np.testing.assert_allclose(scaled.m1, 33.0 + 3.5 * plain.m1, rtol=1e-12)
    np.testing.assert_allclose(scaled.v1, 3.5**2 * plain.v1, rtol=1e-9)
    np.testing.assert_allclose(scaled.m2, np.log(3.5) + plain.m2, rtol=1e-12)
    np.testing.assert_allclose(scaled.v2, plain.v2, rtol=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_one_patient_and_many_agree_across_blocks(name: str) -> None:
    posterior = random_posterior(name)
    X = np.random.default_rng(2).normal(size=(2 * BLOCK_ROWS + 3, D))
    many = posterior.predict(X)
    for row in (0, BLOCK_ROWS - 1, BLOCK_ROWS, 2 * BLOCK_ROWS + 2):
        one = posterior.predict(X[row : row + 1])
        for part in ("m1", "v1", "m2", "v2"):
            np.testing.assert_allclose(getattr(one, part)[0], getattr(many, part)[row], rtol=1e-10, atol=1e-12)


def test_nobody_gives_an_empty_answer() -> None:
    assert random_posterior("rbf").predict(np.empty((0, D))).m1.shape == (0,)


def test_memory_beyond_the_answer_does_not_grow_with_the_people() -> None:
    posterior = random_posterior("matern52")
    X = np.random.default_rng(3).normal(size=(50_000, D))
    tracemalloc.start()
    posterior.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    answer, a_million = 4 * len(X) * 8, 2**20
    assert peak < answer + a_million


def test_variance_is_never_negative_where_rounding_would_make_it_so() -> None:
    Z = np.random.default_rng(4).normal(size=(M, D))
    exact = SparseGP.whitened(Kernel("rbf", 1.0, np.ones(D)), 0.0, Z, np.zeros(M), np.zeros((M, M)), jitter=1e-13)
    rounded = SparseGP(exact.kernel, 0.0, Z, exact.weights, exact.projection * (1.0 + 1e-12), exact.reduction)
    moments = HeteroscedasticPosterior(UNIT, rounded, rounded).predict(Z)
    assert (moments.v1 == 0.0).all()
    assert (moments.v2 == 0.0).all()


def test_variance_rises_to_the_prior_far_from_the_inducing_points() -> None:
    posterior = random_posterior("rbf")
    np.testing.assert_allclose(posterior.predict(np.full((1, D), 60.0)).v1, posterior.f1.kernel.variance)


def test_a_constant_latent_function_is_exact() -> None:
    constant = SparseGP.constant("rbf", -0.7, D)
    posterior = HeteroscedasticPosterior(MM, random_posterior("rbf").f1, constant)
    moments = HeteroscedasticPosterior.from_arrays(posterior.arrays(), "rbf").predict(MM.x_mean + np.eye(D))
    assert (moments.m2 == np.log(3.5) - 0.7).all()
    assert (moments.v2 == 0.0).all()


def test_a_table_with_another_number_of_covariates_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not \[N, 3\]"):
        random_posterior("rbf").predict(np.zeros((4, D + 1)))


@pytest.mark.parametrize("name", SHAPES)
def test_arrays_bring_the_same_posterior_back(name: str) -> None:
    posterior = random_posterior(name, MM)
    arrays = posterior.arrays()
    assert all(array.dtype == np.float64 for array in arrays.values())
    X = np.random.default_rng(6).normal(MM.x_mean, MM.x_sd, size=(30, D))
    before, after = posterior.predict(X), HeteroscedasticPosterior.from_arrays(arrays, name).predict(X)
    for part in ("m1", "v1", "m2", "v2"):
        assert (getattr(before, part) == getattr(after, part)).all()


def test_no_array_of_a_posterior_can_be_written_to() -> None:
    for name, array in random_posterior("rbf").arrays().items():
        assert array.ndim == 0 or not array.flags.writeable, name


def _with(array: Array, value: float) -> Array:
    changed = array.copy()
    changed[..., -1] = value
    return changed


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("x_sd", lambda array: _with(array, 0.0)),
        ("y_scale", lambda array: np.array(-1.0)),
        ("f1_Z", lambda array: array[:, :2]),
        ("f1_weights", lambda array: array[:-1]),
        ("f1_projection", lambda array: _with(array, np.nan)),
        ("f1_variance", lambda array: np.array(0.0)),
        ("f2_lengthscales", lambda array: _with(array, -1.0)),
        ("f2_alpha", lambda array: np.array([1.0])),
        ("f2_reduction", lambda array: array.astype(np.float32)),
        ("f2_mean", lambda array: np.array(np.inf)),
    ],
)
def test_a_spoilt_array_is_refused_by_its_name(name: str, spoil: Callable[[Array], Array]) -> None:
    arrays = random_posterior("rbf").arrays()
    arrays[name] = spoil(arrays[name])
    with pytest.raises(ValueError, match=f"^{name}: "):
        HeteroscedasticPosterior.from_arrays(arrays, "rbf")


def test_missing_and_surplus_arrays_are_refused_by_their_names() -> None:
    arrays = random_posterior("rbf").arrays()
    for name in arrays:
        with pytest.raises(ValueError, match=f"^{name}: is missing"):
            HeteroscedasticPosterior.from_arrays({k: v for k, v in arrays.items() if k != name}, "rbf")
    with pytest.raises(ValueError, match=r"^f3_Z: does not belong"):
        HeteroscedasticPosterior.from_arrays(arrays | {"f3_Z": np.zeros(1)}, "rbf")


def test_a_constant_function_has_no_negative_variance() -> None:
    posterior = HeteroscedasticPosterior(UNIT, random_posterior("rbf").f1, SparseGP.constant("rbf", 0.0, D))
    with pytest.raises(ValueError, match=r"^f2_variance: "):
        HeteroscedasticPosterior.from_arrays(posterior.arrays() | {"f2_variance": np.array(-0.1)}, "rbf")
