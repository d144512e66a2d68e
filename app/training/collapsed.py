"""The SVGP with q(f1) always at its optimum: the same bound, fewer parameters, a better shaped one.

Given f2 the data term is quadratic in f1 (see `noise`), with precision p_n = weight_n · e^{-2 m2 + 2 v2} around
r = y - c1. With A = L⁻¹ Kuf, B = I + A diag(p) Aᵀ and b = A diag(p) r the best whitened q(f1) = N(B⁻¹ b, B⁻¹), and

    ELBO = Σ free_n - ½ Σ p_n (r_n² + k_nn - |a_n|²) + ½ bᵀ B⁻¹ b - ½ log|B| - KL(q2)

(for a constant f2 Titsias' bound; marginalising f1 goes back to Lázaro-Gredilla and Titsias 2011).
"""

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from app.maths.moments import Array
from app.training import svgp
from app.training.likelihood import ConstantSpread
from app.training.noise import ConstantLogSd, GaussianNoise, StudentNoise, VaryingLogSd
from app.training.prior import mean_kernel
from app.training.recipe import Recipe
from app.training.stack import gpflow, tf


class Collapsed(gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin):  # type: ignore[misc]
    """Begins with f2 constant and Gaussian noise; `release` and `make_robust` go on from where it stands."""

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
        A = svgp.whitened(self.kernel, self.points, self.X)
        weighted = A * precision
        B = tf.linalg.eye(A.shape[0], dtype=A.dtype) + tf.matmul(weighted, A, transpose_b=True)
        return A, B, tf.linalg.matvec(weighted, residual)[:, None]

    def as_svgp(self) -> Any:
        """The same model with q(f1) written out; its ELBO is equal."""
        mean, q = float(self.mean.numpy()), self._best_q()
        if isinstance(self.log_sd, ConstantLogSd):
            likelihood = ConstantSpread(float(self.log_sd.mean.numpy()))
            return svgp.constant_spread(self.kernel, self.points, mean, likelihood, q)
        other = self.log_sd
        means = mean, float(other.mean.numpy())
        q2 = other.q_mu.numpy(), other.q_sqrt.numpy()
        return svgp.varying_spread((self.kernel, other.kernel), (self.points, other.points), means, (q, q2))

    def _best_q(self) -> svgp.Q:
        _, precision = self._terms()
        _, B, b = (part.numpy() for part in self._normal_equations(precision, self.y - self.mean))
        # B = U Uᵀ with U upper triangular, by a Cholesky from the last row up; then B⁻¹ = U⁻ᵀ U⁻¹ has a lower root.
        upper = cholesky(B[::-1, ::-1], lower=True)[::-1, ::-1]
        root = solve_triangular(upper, np.eye(len(B)), trans="T")
        return root @ (root.T @ b), root[None]
