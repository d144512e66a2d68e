"""Small problems with a known answer, and a recipe that trains on them in a second."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from app.maths.moments import Array
from app.training.recipe import Recipe

SHORT = Recipe(inducing_minimum=8, constant_iterations=25, released_iterations=25, robust_iterations=25)


def short(**options: Any) -> Recipe:
    return replace(SHORT, **options)


def people(size: int = 60, seed: int = 0) -> tuple[Array, Array]:
    """Raw covariates [N, 2] far from unit scale and diameters [N] whose sd grows fourfold along the first."""
    rng = np.random.default_rng(seed)
    X = rng.uniform([20.0, 150.0], [80.0, 190.0], size=(size, 2))
    return X, true_mean(X) + true_sd(X) * rng.normal(size=size)


def student_term(y: Any, m1: Any, v1: Any, m2: Any, v2: Any, freedom: float) -> Any:
    """The bound that Student-t noise is trained by: const(nu) - m2 - ½ (nu + 1) log(1 + T/nu)."""
    squares = np.exp(2.0 * (v2 - m2)) * ((y - m1) ** 2 + v1)
    constant = math.lgamma((freedom + 1.0) / 2.0) - math.lgamma(freedom / 2.0) - 0.5 * math.log(freedom * math.pi)
    return constant - m2 - 0.5 * (freedom + 1.0) * np.log1p(squares / freedom)


def true_mean(X: Array) -> Array:
    age, height = X.T
    mean: Array = 25.0 + 0.1 * age + 4.0 * np.sin((height - 150.0) / 15.0)
    return mean


def true_sd(X: Array) -> Array:
    sd: Array = 0.5 * 4.0 ** ((X[:, 0] - 20.0) / 60.0)
    return sd
