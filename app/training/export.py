"""From a trained GPflow model to the NumPy posterior, and GPflow's own prediction to compare it with."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.maths.gp.kernels import Kernel
from app.maths.gp.posterior import HeteroscedasticPosterior, SparseGP
from app.maths.gp.scaling import Scaling
from app.maths.moments import Array, Moments
from app.training.gpflow_setup import gpflow
from app.training.model import ConstantSpread

STOCK_KERNELS = {
    "rational_quadratic": gpflow.kernels.RationalQuadratic,
    "rbf": gpflow.kernels.SquaredExponential,
    "matern52": gpflow.kernels.Matern52,
}


def posterior_of(model: Any, kernel_name: str, scaling: Scaling, jitter: float) -> HeteroscedasticPosterior:
    """The arrays of either model; `jitter` is the one that it was trained with."""
    means = model.mean_function.c.numpy()
    q = zip(model.q_mu.numpy().T, model.q_sqrt.numpy(), strict=True)
    latents = [
        SparseGP.whitened(_kernel(kernel, kernel_name), float(mean), points.Z.numpy(), q_mu, q_sqrt, jitter)
        for kernel, points, mean, (q_mu, q_sqrt) in zip(_kernels(model), _points(model), means, q, strict=True)
    ]
    if isinstance(model.likelihood, ConstantSpread):
        constant = float(model.likelihood.constant.numpy())
        latents.append(SparseGP.constant(kernel_name, constant, len(scaling.x_mean)))
    return HeteroscedasticPosterior(scaling, *latents)


def reference_of(model: Any, kernel_name: str, scaling: Scaling, jitter: float) -> Callable[[Array], Moments]:
    """The same prediction by GPflow as it ships: its own SVGP and kernels around the trained parameters."""
    stock = _stock(model, kernel_name)

    def predict(X: Array) -> Moments:
        with gpflow.config.as_context(gpflow.config.Config(jitter=jitter)):
            mean, variance = (part.numpy().T for part in stock.predict_f(scaling.standardise(X)))
        if len(mean) == 1:
            mean = np.vstack([mean, np.full(len(X), model.likelihood.constant.numpy())])
            variance = np.vstack([variance, np.zeros(len(X))])
        center, scale = scaling.y_center, scaling.y_scale
        return Moments(center + scale * mean[0], scale**2 * variance[0], np.log(scale) + mean[1], variance[1])

    return predict


def _kernels(model: Any) -> list[Any]:
    return list(getattr(model.kernel, "kernels", [model.kernel]))


def _points(model: Any) -> list[Any]:
    return list(getattr(model.inducing_variable, "inducing_variable_list", [model.inducing_variable]))


def _kernel(kernel: Any, name: str) -> Kernel:
    alpha = float(kernel.alpha.numpy()) if name == "rational_quadratic" else 1.0
    return Kernel(name, float(kernel.variance.numpy()), kernel.lengthscales.numpy(), alpha)


def _stock(model: Any, kernel_name: str) -> Any:
    kernels = [_stock_kernel(kernel, kernel_name) for kernel in _kernels(model)]
    return gpflow.models.SVGP(
        gpflow.kernels.SeparateIndependent(kernels) if len(kernels) > 1 else kernels[0],
        model.likelihood,
        model.inducing_variable,
        mean_function=model.mean_function,
        num_latent_gps=len(kernels),
        q_mu=model.q_mu.numpy(),
        q_sqrt=model.q_sqrt.numpy(),
    )


def _stock_kernel(kernel: Any, name: str) -> Any:
    stock = STOCK_KERNELS[name]()
    stock.variance, stock.lengthscales = kernel.variance, kernel.lengthscales
    if name == "rational_quadratic":
        stock.alpha = kernel.alpha
    return stock
