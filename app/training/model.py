"""The model as GPflow knows it: a whitened SVGP with a full covariance q, of f1 alone or of f1 and f2.

    y = f1(x) + e^{f2(x)}·noise      f1(x) ~ GP(c1, k1)      f2(x) ~ GP(c2, k2), or f2 = c2 in the likelihood

Each latent function has its own ARD kernel, inducing points and constant mean. The paper's optimiser trains this model
directly; L-BFGS trains its collapsed form (`CollapsedSVGP`), which is then converted back to this one.

The data term is in closed form, without quadrature inside the optimiser. With f1 ~ N(m1, v1) and f2 ~ N(m2, v2)
independent,

    E[(y - f1)² e^{-2 f2}] = T = exp(-2 m2 + 2 v2) · ((y - m1)² + v1)
    E[log N(y | f1, e^{2 f2})] = -½ log 2π - m2 - T/2
"""

import math
import warnings
from typing import Any

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.linalg import cholesky, solve_triangular

from app.maths.moments import Array
from app.training.gpflow_setup import gpflow, tf, tfp
from app.training.recipe import Recipe

Prior = tuple[float, float]  # of a positive parameter: its median, the sd of its logarithm


class RationalQuadratic(gpflow.kernels.RationalQuadratic):  # type: ignore[misc]
    """GPflow's kernel by exp and log1p instead of a power: 3.5 ms instead of 9.1 with its gradient (1110 x 55)."""

    def K_r2(self, r2: Any) -> Any:
        return self.variance * tf.exp(-self.alpha * tf.math.log1p(0.5 * r2 / self.alpha))


KERNELS = {
    "rational_quadratic": RationalQuadratic,
    "rbf": gpflow.kernels.SquaredExponential,
    "matern52": gpflow.kernels.Matern52,
}


class NormalOfLog:
    """A prior whose density is taken over log p. GPflow's log-normal would add -log p, the Jacobian, to it."""

    def __init__(self, median: float, sd: float) -> None:
        self._normal = tfp.distributions.Normal(np.log(median), np.float64(sd))

    def log_prob(self, value: Any) -> Any:
        return self._normal.log_prob(tf.math.log(value))


def mean_kernel(recipe: Recipe, covariates: int) -> Any:
    """k1, of the latent mean."""
    return _kernel(recipe, covariates, variance=(1.0, 1.0), lengthscale=(1.0, 1.0))


def log_sd_kernel(recipe: Recipe, covariates: int) -> Any:
    """k2, of the latent log sd."""
    variance = recipe.f2_variance, recipe.f2_variance_sd
    lengthscale = recipe.f2_lengthscale, recipe.f2_lengthscale_sd
    return _kernel(recipe, covariates, variance, lengthscale)


def _kernel(recipe: Recipe, covariates: int, variance: Prior, lengthscale: Prior) -> Any:
    """A kernel that starts at the medians of its priors."""
    # Distances grow with √D: so does the lengthscale of the same smoothness.
    scaled = lengthscale[0] * np.sqrt(covariates), lengthscale[1]
    kernel = KERNELS[recipe.kernel]()
    kernel.variance = _positive(variance, (), recipe.priors)
    kernel.lengthscales = _positive(scaled, (covariates,), recipe.priors)
    if recipe.kernel == "rational_quadratic":
        kernel.alpha = _positive((1.0, 1.0), (), recipe.priors)
    return kernel


def _positive(prior: Prior, shape: tuple[int, ...], with_prior: bool) -> Any:
    """A parameter optimised by its logarithm, starting at the prior's median."""
    return gpflow.Parameter(
        np.full(shape, prior[0]),
        transform=tfp.bijectors.Exp(),
        prior=NormalOfLog(*prior) if with_prior else None,
    )


def expected_log_density(y: Any, m1: Any, v1: Any, m2: Any, v2: Any) -> Any:
    """The data term of each person; tensors of one shape."""
    squares = tf.exp(2.0 * (v2 - m2)) * (tf.square(y - m1) + v1)
    return -0.5 * math.log(2.0 * math.pi) - m2 - 0.5 * squares


class Spread(gpflow.likelihoods.QuadratureLikelihood):  # type: ignore[misc]
    """y = f1 + e^{f2}·noise, with standard normal noise."""

    def __init__(self, latents: int) -> None:
        super().__init__(input_dim=None, latent_dim=latents, observation_dim=1)

    def log_sd(self, mean: Any, variance: Any) -> tuple[Any, Any]:
        """Mean and variance of f2 from those of all latent functions."""
        raise NotImplementedError

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        return expected_log_density(Y[..., 0], Fmu[..., 0], Fvar[..., 0], *self.log_sd(Fmu, Fvar))

    def _log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        return self._variational_expectations(X, F, tf.zeros_like(F), Y)

    def _conditional_mean(self, X: Any, F: Any) -> Any:
        return F[..., :1]

    def _conditional_variance(self, X: Any, F: Any) -> Any:
        return tf.exp(2.0 * self.log_sd(F, tf.zeros_like(F))[0])[..., None]


class ConstantSpread(Spread):
    """One latent function; f2 is a trained number, with no uncertainty of its own."""

    def __init__(self, start: float) -> None:
        super().__init__(latents=1)
        self.constant = gpflow.Parameter(start)

    def log_sd(self, mean: Any, variance: Any) -> tuple[Any, Any]:
        return self.constant + tf.zeros_like(mean[..., 0]), tf.zeros_like(variance[..., 0])


class VaryingSpread(Spread):
    """Two latent functions, f1 and f2."""

    def __init__(self) -> None:
        super().__init__(latents=2)

    def log_sd(self, mean: Any, variance: Any) -> tuple[Any, Any]:
        return mean[..., 1], variance[..., 1]


class HeteroscedasticSVGP(gpflow.models.SVGP):  # type: ignore[misc]
    """GPflow's SVGP of two separate latent GPs, without its loop over them: a quarter of the tracing time."""

    def predict_f(self, Xnew: Any, full_cov: bool = False, full_output_cov: bool = False) -> tuple[Any, Any]:
        if full_cov or full_output_cov:
            return super().predict_f(Xnew, full_cov, full_output_cov)  # type: ignore[no-any-return]
        means, variances = zip(*(self._conditional(Xnew, latent) for latent in range(2)), strict=True)
        return tf.stack(means, -1) + self.mean_function(Xnew), tf.stack(variances, -1)

    def _conditional(self, X: Any, latent: int) -> Any:
        kernel = self.kernel.kernels[latent]
        points = self.inducing_variable.inducing_variable_list[latent]
        return conditional(kernel, points, X, self.q_mu[:, latent : latent + 1], self.q_sqrt[latent])


def whitened(kernel: Any, points: Any, X: Any) -> Any:
    """A = L⁻¹ Kuf [M, N], what the whitened inducing values are multiplied with at each person."""
    Kuu = gpflow.covariances.Kuu(points, kernel, jitter=gpflow.config.default_jitter())
    return tf.linalg.triangular_solve(tf.linalg.cholesky(Kuu), gpflow.covariances.Kuf(points, kernel, X))


def conditional(kernel: Any, points: Any, X: Any, q_mu: Any, q_sqrt: Any) -> tuple[Any, Any]:
    """Mean and variance [N] of one latent function without its constant, from q_mu [M, 1] and q_sqrt [M, M]."""
    A = whitened(kernel, points, X)
    explained = tf.reduce_sum(tf.square(A), 0)
    left = tf.reduce_sum(tf.square(tf.matmul(q_sqrt, A, transpose_a=True)), 0)
    return tf.matmul(A, q_mu, transpose_a=True)[:, 0], kernel(X, full_cov=False) - explained + left


def untrained(recipe: Recipe, Z: Array) -> Any:
    """The model before its first step: q at the prior, kernels at the medians of theirs."""
    covariates = Z.shape[1]
    kernel, points = mean_kernel(recipe, covariates), gpflow.inducing_variables.InducingPoints(Z.copy())
    q = np.zeros((len(Z), 1)), np.eye(len(Z))[None]
    if not recipe.heteroscedastic:
        return constant_spread(kernel, points, 0.0, ConstantSpread(recipe.start_log_sd), q)
    kernels = kernel, log_sd_kernel(recipe, covariates)
    both = points, gpflow.inducing_variables.InducingPoints(Z.copy())
    return varying_spread(kernels, both, (0.0, recipe.start_log_sd), (q, q))


Q = tuple[Array, Array]  # q_mu [M, 1], q_sqrt [1, M, M] of one latent function


def constant_spread(kernel: Any, points: Any, mean: float, likelihood: ConstantSpread, q: Q) -> Any:
    constant = gpflow.functions.Constant(np.array([mean]))
    return gpflow.models.SVGP(kernel, likelihood, points, mean_function=constant, q_mu=q[0], q_sqrt=q[1])


def varying_spread(
    kernels: tuple[Any, Any], points: tuple[Any, Any], means: tuple[float, float], q: tuple[Q, Q]
) -> HeteroscedasticSVGP:
    return HeteroscedasticSVGP(
        gpflow.kernels.SeparateIndependent(kernels),
        VaryingSpread(),
        gpflow.inducing_variables.SeparateIndependentInducingVariables(points),
        mean_function=gpflow.functions.Constant(np.array(means)),
        num_latent_gps=2,
        q_mu=np.hstack([q[0][0], q[1][0]]),
        q_sqrt=np.concatenate([q[0][1], q[1][1]]),
    )


def starting_points(X: Array, count: int, rng: np.random.Generator) -> Array:
    """[M, D] with M = `count`, or fewer where there are fewer different people."""
    different = len(np.unique(X, axis=0))
    with warnings.catch_warnings():
        # An empty cluster keeps its first centre, a person: as good a start as any.
        warnings.simplefilter("ignore", UserWarning)
        centres, _ = kmeans2(X, min(count, different), iter=20, minit="++", seed=rng)
    return np.asarray(centres, dtype=np.float64)


class ConstantLogSd(gpflow.Module):  # type: ignore[misc]
    """f2 = c2."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.mean = gpflow.Parameter(start)

    def moments(self, X: Any) -> tuple[Any, Any]:
        zeros = tf.zeros_like(X[:, 0])
        return self.mean + zeros, zeros

    def prior_kl(self) -> Any:
        return tf.zeros((), tf.float64)


class VaryingLogSd(gpflow.Module):  # type: ignore[misc]
    """f2 ~ GP(c2, k2) with a whitened q that starts at its prior."""

    def __init__(self, recipe: Recipe, Z: Array, start: float) -> None:
        super().__init__()
        self.kernel = log_sd_kernel(recipe, Z.shape[1])
        self.points = gpflow.inducing_variables.InducingPoints(Z.copy())
        self.mean = gpflow.Parameter(start)
        self.q_mu = gpflow.Parameter(np.zeros((len(Z), 1)))
        self.q_sqrt = gpflow.Parameter(np.eye(len(Z))[None], transform=gpflow.utilities.triangular())

    def moments(self, X: Any) -> tuple[Any, Any]:
        mean, variance = conditional(self.kernel, self.points, X, self.q_mu, self.q_sqrt[0])
        return self.mean + mean, variance

    def prior_kl(self) -> Any:
        return gpflow.kullback_leiblers.gauss_kl(self.q_mu, self.q_sqrt)


class GaussianNoise(gpflow.Module):  # type: ignore[misc]
    def terms(self, m2: Any) -> tuple[Any, Any]:
        """free and weight of each person."""
        return -0.5 * math.log(2.0 * math.pi) - m2, tf.ones_like(m2)


class StudentNoise(gpflow.Module):  # type: ignore[misc]
    def __init__(self, freedom: float, start: Array) -> None:
        super().__init__()
        self.freedom = freedom
        # tau is optimised by its logarithm, which a y that hits m1 must not send to -inf.
        self.tau = gpflow.Parameter(np.maximum(start, 1e-3), transform=tfp.bijectors.Exp())
        half = 0.5 * (freedom + 1.0)
        self._constant = math.lgamma(half) - math.lgamma(0.5 * freedom) - 0.5 * math.log(freedom * math.pi)

    def terms(self, m2: Any) -> tuple[Any, Any]:
        """free and weight of each person."""
        weight = (self.freedom + 1.0) / (self.freedom + self.tau)
        tangent = 0.5 * weight * self.tau - 0.5 * (self.freedom + 1.0) * tf.math.log1p(self.tau / self.freedom)
        return self._constant - m2 + tangent, weight


class CollapsedSVGP(gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin):  # type: ignore[misc]
    """The SVGP with q(f1) always at its optimum: the same bound with fewer parameters, and easier to optimise.

    Each person's data term is written as free_n - ½ weight_n · T_n with T_n = e^{-2 m2 + 2 v2} ((y - m1)² + v1), which
    is quadratic in f1, so that the best q(f1) has a closed form:

        Gaussian     free = -½ log 2π - m2                                              weight = 1
        Student-t    free = const(nu) - m2 - ½ (nu + 1) log(1 + tau/nu) + ½ weight tau  weight = (nu + 1)/(nu + tau)

    The second is the tangent at T = tau of const(nu) - m2 - ½ (nu + 1) log(1 + T/nu), which is itself a lower bound of
    the expected log density of Student-t noise (Jensen: -log is convex), so that the objective stays a lower bound of
    the evidence, and a far-out y pulls with a bounded force. The function is convex in T, so the tangent lies below
    and touches it: maximised over every tau_n it equals the Student-t term.

    Given f2 the precision of the data term around r = y - c1 is p_n = weight_n · e^{-2 m2 + 2 v2}. With A = L⁻¹ Kuf,
    B = I + A diag(p) Aᵀ and b = A diag(p) r the best whitened q(f1) = N(B⁻¹ b, B⁻¹), and

        ELBO = Σ free_n - ½ Σ p_n (r_n² + k_nn - |a_n|²) + ½ bᵀ B⁻¹ b - ½ log|B| - KL(q2)

    (for a constant f2 Titsias' bound; marginalising f1 goes back to Lázaro-Gredilla and Titsias 2011).

    Starts with f2 constant and Gaussian noise; `make_heteroscedastic` and `make_robust` continue from the current
    parameters.
    """

    def __init__(self, recipe: Recipe, X: Array, y: Array, Z: Array) -> None:
        super().__init__()
        self.X, self.y = tf.constant(X), tf.constant(y)
        self.kernel = mean_kernel(recipe, Z.shape[1])
        self.points = gpflow.inducing_variables.InducingPoints(Z.copy())
        self.mean = gpflow.Parameter(0.0)
        self.log_sd: Any = ConstantLogSd(recipe.start_log_sd)
        self.noise: Any = GaussianNoise()

    def make_heteroscedastic(self, recipe: Recipe, Z: Array) -> None:
        """f2 becomes a Gaussian process around the constant that it was."""
        self.log_sd = VaryingLogSd(recipe, Z, float(self.log_sd.mean.numpy()))

    def make_robust(self, freedom: float) -> None:
        """Student-t noise, its tangents at the squared scores T of the present model."""
        m2, v2 = self.log_sd.moments(self.X)
        mean, variance = self.as_svgp().predict_f(self.X)
        squares = tf.exp(2.0 * (v2 - m2)) * (tf.square(self.y - mean[:, 0]) + variance[:, 0])
        self.noise = StudentNoise(freedom, squares.numpy())

    def maximum_log_likelihood_objective(self) -> Any:
        return self.elbo()

    def elbo(self) -> Any:
        free, precision = self._terms()
        residual = self.y - self.mean
        A, B, b = self._normal_equations(precision, residual)
        lower = tf.linalg.cholesky(B)
        explained = tf.linalg.triangular_solve(lower, b)
        unexplained = tf.square(residual) + self.kernel(self.X, full_cov=False) - tf.reduce_sum(tf.square(A), 0)
        return (
            tf.reduce_sum(free - 0.5 * precision * unexplained)
            + 0.5 * tf.reduce_sum(tf.square(explained))
            - tf.reduce_sum(tf.math.log(tf.linalg.diag_part(lower)))
            - self.log_sd.prior_kl()
        )

    def _terms(self) -> tuple[Any, Any]:
        """free [N] and p [N]"""
        m2, v2 = self.log_sd.moments(self.X)
        free, weight = self.noise.terms(m2)
        return free, weight * tf.exp(2.0 * (v2 - m2))

    def _normal_equations(self, precision: Any, residual: Any) -> tuple[Any, Any, Any]:
        """A [M, N], B [M, M], b [M, 1]"""
        A = whitened(self.kernel, self.points, self.X)
        weighted = A * precision
        B = tf.linalg.eye(A.shape[0], dtype=A.dtype) + tf.matmul(weighted, A, transpose_b=True)
        return A, B, tf.linalg.matvec(weighted, residual)[:, None]

    def as_svgp(self) -> Any:
        """The same model with q(f1) written out; its ELBO is equal."""
        mean, q = float(self.mean.numpy()), self._best_q()
        if isinstance(self.log_sd, ConstantLogSd):
            likelihood = ConstantSpread(float(self.log_sd.mean.numpy()))
            return constant_spread(self.kernel, self.points, mean, likelihood, q)
        other = self.log_sd
        means = mean, float(other.mean.numpy())
        q2 = other.q_mu.numpy(), other.q_sqrt.numpy()
        return varying_spread((self.kernel, other.kernel), (self.points, other.points), means, (q, q2))

    def _best_q(self) -> Q:
        _, precision = self._terms()
        _, B, b = (part.numpy() for part in self._normal_equations(precision, self.y - self.mean))
        # B = U Uᵀ with U upper triangular, by a Cholesky from the last row up; then B⁻¹ = U⁻ᵀ U⁻¹ has a lower root.
        upper = cholesky(B[::-1, ::-1], lower=True)[::-1, ::-1]
        root = solve_triangular(upper, np.eye(len(B)), trans="T")
        return root @ (root.T @ b), root[None]
