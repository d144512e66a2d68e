"""What stands around f1 in the collapsed model: the log sd f2, and the shape of the noise.

Each person's data term is written as free_n - ½ weight_n · T_n with T_n = e^{-2 m2 + 2 v2} ((y - m1)² + v1), which
is quadratic in f1, so that the best q(f1) has a closed form:

    Gaussian     free = -½ log 2π - m2                                              weight = 1
    Student-t    free = const(nu) - m2 - ½ (nu + 1) log(1 + tau/nu) + ½ weight tau  weight = (nu + 1)/(nu + tau)

The second is the tangent at T = tau of -½ (nu + 1) log(1 + T/nu). That function is convex, so the tangent lies below
and touches it: maximised over every tau_n it is the Student-t term of `likelihood`, nothing less.
"""

import math
from typing import Any

import numpy as np

from app.maths.moments import Array
from app.training.prior import log_sd_kernel
from app.training.recipe import Recipe
from app.training.stack import gpflow, tf, tfp
from app.training.svgp import conditional


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
