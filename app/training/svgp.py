"""The model as GPflow knows it: a whitened SVGP with a full covariance q, of f1 alone or of f1 and f2.

    f1(x) ~ GP(c1, k1)      f2(x) ~ GP(c2, k2), or f2 = c2 in the likelihood

Each latent function has its own ARD kernel, inducing points and constant mean. The paper's optimiser trains it as
it stands; L-BFGS trains its collapsed form, which then becomes one of these.
"""

from typing import Any

import numpy as np

from app.maths.moments import Array
from app.training.likelihood import ConstantSpread, VaryingSpread
from app.training.prior import log_sd_kernel, mean_kernel
from app.training.recipe import Recipe
from app.training.stack import gpflow, tf


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
