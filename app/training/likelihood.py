"""The data term of both models, in closed form: no quadrature inside the optimiser.

With f1 ~ N(m1, v1) and f2 ~ N(m2, v2) independent,

    E[(y - f1)² e^{-2 f2}] = T = exp(-2 m2 + 2 v2) · ((y - m1)² + v1)

    Gaussian     E[log N(y | f1, e^{2 f2})]        = -½ log 2π - m2 - T/2
    Student-t    E[log t_nu((y - f1) e^{-f2})] - m2 ≥ const(nu) - m2 - ½ (nu + 1) log(1 + T/nu)

The first is exact. The second is a bound (Jensen: -log is convex), so the objective stays a lower bound of the
evidence; it lets a far-out y pull with a bounded force.
"""

import math
from typing import Any

from app.training.stack import gpflow, tf

GAUSSIAN = math.inf  # degrees of freedom


def expected_log_density(y: Any, m1: Any, v1: Any, m2: Any, v2: Any, freedom: float = GAUSSIAN) -> Any:
    """The data term of each person; tensors of one shape."""
    squares = tf.exp(2.0 * (v2 - m2)) * (tf.square(y - m1) + v1)
    if freedom == GAUSSIAN:
        return -0.5 * math.log(2.0 * math.pi) - m2 - 0.5 * squares
    constant = math.lgamma((freedom + 1.0) / 2.0) - math.lgamma(freedom / 2.0) - 0.5 * math.log(freedom * math.pi)
    return constant - m2 - 0.5 * (freedom + 1.0) * tf.math.log1p(squares / freedom)


class Spread(gpflow.likelihoods.QuadratureLikelihood):  # type: ignore[misc]
    """y = f1 + e^{f2}·noise. `freedom` chooses the noise and may be changed between stages."""

    def __init__(self, latents: int) -> None:
        super().__init__(input_dim=None, latent_dim=latents, observation_dim=1)
        self.freedom = GAUSSIAN

    def log_sd(self, mean: Any, variance: Any) -> tuple[Any, Any]:
        """Mean and variance of f2 from those of all latent functions."""
        raise NotImplementedError

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        m2, v2 = self.log_sd(Fmu, Fvar)
        return expected_log_density(Y[..., 0], Fmu[..., 0], Fvar[..., 0], m2, v2, self.freedom)

    def _log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        return self._variational_expectations(X, F, tf.zeros_like(F), Y)

    def _conditional_mean(self, X: Any, F: Any) -> Any:
        return F[..., :1]

    def _conditional_variance(self, X: Any, F: Any) -> Any:
        noise = 1.0 if self.freedom == GAUSSIAN else self.freedom / (self.freedom - 2.0)
        return noise * tf.exp(2.0 * self.log_sd(F, tf.zeros_like(F))[0])[..., None]


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
