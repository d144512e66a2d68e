"""The SVGP with q(f1) always at its optimum: the same bound with fewer parameters, and easier to optimise.

Each person's data term is written as free_n - ½ weight_n · T_n with T_n = e^{-2 m2 + 2 v2} ((y - m1)² + v1), which
is quadratic in f1, so that the best q(f1) has a closed form:

    Gaussian     free = -½ log 2π - m2                                              weight = 1
    Student-t    free = const(nu) - m2 - ½ (nu + 1) log(1 + tau/nu) + ½ weight tau  weight = (nu + 1)/(nu + tau)

The second is the tangent at T = tau of const(nu) - m2 - ½ (nu + 1) log(1 + T/nu), which is itself a lower bound of
the expected log density of Student-t noise (Jensen: -log is convex), so that the objective stays a lower bound of the
evidence, and a far-out y pulls with a bounded force. The function is convex in T, so the tangent lies below and
touches it: maximised over every tau_n it equals the Student-t term.

Given f2 the precision of the data term around r = y - c1 is p_n = weight_n · e^{-2 m2 + 2 v2}. With A = L⁻¹ Kuf,
B = I + A diag(p) Aᵀ and b = A diag(p) r the best whitened q(f1) = N(B⁻¹ b, B⁻¹), and

    ELBO = Σ free_n - ½ Σ p_n (r_n² + k_nn - |a_n|²) + ½ bᵀ B⁻¹ b - ½ log|B| - KL(q2)

(for a constant f2 Titsias' bound; marginalising f1 goes back to Lázaro-Gredilla and Titsias 2011).
"""

import math
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from app.maths.moments import Array
from app.training.gpflow_setup import gpflow, tf, tfp
from app.training.model import (
    ConstantSpread,
    Q,
    conditional,
    constant_spread,
    log_sd_kernel,
    mean_kernel,
    varying_spread,
    whitened,
)
from app.training.recipe import Recipe


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


class Collapsed(gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin):  # type: ignore[misc]
    """Starts with f2 constant and Gaussian noise; `release` and `make_robust` continue from the current parameters."""

    def __init__(self, recipe: Recipe, X: Array, y: Array, Z: Array) -> None:
        super().__init__()
        self.X, self.y = tf.constant(X), tf.constant(y)
        self.kernel = mean_kernel(recipe, Z.shape[1])
        self.points = gpflow.inducing_variables.InducingPoints(Z.copy())
        self.mean = gpflow.Parameter(0.0)
        self.log_sd: Any = ConstantLogSd(recipe.start_log_sd)
        self.noise: Any = GaussianNoise()

    def release(self, recipe: Recipe, Z: Array) -> None:
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
