"""Stationary ARD kernels, written so that one matrix product serves a whole table of people.

    k(x, z) = variance · g(u),   u = offset + slope · r²,   r² = Σ_d ((x_d - z_d) / l_d)²

    rational_quadratic   u = 1 + r²/(2 alpha)   g(u) = u^-alpha
    rbf                  u = -r²/2              g(u) = exp(u)
    matern52             u = 5 r²               g(u) = (1 + √u + u/3) exp(-√u)

u is linear in the features (1, x, x²), so `features(X) @ kernel.landmarks(Z)` gives all of it. What cancels in
that sum is of the order 1e-16·|x/l|², far below the jitter of a sparse posterior; standardise x first.

To add a kernel: a function g that may write into its argument, and a line in `SHAPES`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.maths.moments import Array, freeze


def _power(u: Array, alpha: float | Array) -> Array:
    # log and exp instead of a power: the vectorised loops of NumPy take a fifth less time.
    np.log(u, out=u)
    u *= -alpha
    return np.exp(u, out=u)


def _exponential(u: Array, alpha: float | Array) -> Array:
    return np.exp(u, out=u)


def _matern52(u: Array, alpha: float | Array) -> Array:
    np.maximum(u, 0.0, out=u)  # rounding leaves -1e-16 where x = z
    root = np.sqrt(u)
    u /= 3.0
    u += root
    u += 1.0
    u *= np.exp(np.negative(root, out=root), out=root)
    return u


@dataclass(frozen=True, slots=True)
class _Shape:
    offset: float
    slope: Callable[[float], float]  # of alpha
    g: Callable[[Array, float | Array], Array]


SHAPES = {
    "rational_quadratic": _Shape(1.0, lambda alpha: 0.5 / alpha, _power),
    "rbf": _Shape(0.0, lambda alpha: -0.5, _exponential),
    "matern52": _Shape(0.0, lambda alpha: 5.0, _matern52),
}


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    name: str  # a key of SHAPES
    variance: float
    lengthscales: Array  # [D], in units of the standardised covariates
    alpha: float = 1.0  # of the rational quadratic; the other shapes have none

    def __post_init__(self) -> None:
        if self.name not in SHAPES:
            raise ValueError(f"unknown kernel {self.name}; known are {', '.join(SHAPES)}")
        freeze(self.lengthscales)

    def landmarks(self, Z: Array) -> Array:
        """[1 + 2 D, M]: what the features of a person are multiplied with to give u for each inducing input."""
        shape = SHAPES[self.name]
        precision = shape.slope(self.alpha) / self.lengthscales**2  # [D]
        squares = np.repeat(precision[:, None], len(Z), axis=1)
        return np.vstack([shape.offset + Z**2 @ precision, -2.0 * (Z * precision).T, squares])

    def correlation(self, u: Array) -> Array:
        """g(u), element by element; overwrites `u`."""
        return SHAPES[self.name].g(u, self.alpha)

    def matrix(self, X: Array, Z: Array) -> Array:
        """[N, M] covariances k(x, z)."""
        return self.variance * self.correlation(features(X) @ self.landmarks(Z))


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """Several kernels with their inducing inputs, evaluated with one product; those of one shape in one pass."""

    landmarks: Array  # [1 + 2 D, M], side by side
    shape: _Shape
    alpha: Array  # [M]

    @classmethod
    def of(cls, *kernels: tuple[Kernel, Array]) -> "Kernels":
        names = {kernel.name for kernel, _ in kernels}
        if len(names) > 1:
            raise ValueError(f"kernels of one model share a shape; here are {' and '.join(sorted(names))}")
        landmarks = np.hstack([kernel.landmarks(Z) for kernel, Z in kernels])
        alpha = np.concatenate([np.full(len(Z), kernel.alpha) for kernel, Z in kernels])
        freeze(landmarks, alpha)
        return cls(landmarks, SHAPES[names.pop()], alpha)

    def correlations(self, rows: Array, out: Array | None) -> Array:
        """g(u) [N, M] or [M] from `features` of standardised covariates, written to `out` if it is given."""
        return self.shape.g(np.dot(rows, self.landmarks, out=out), self.alpha)


def features(X: Array) -> Array:
    """[N, 1 + 2 D] rows (1, x, x²) of standardised covariates, the same for every kernel."""
    people, covariates = X.shape
    rows = np.empty((people, 1 + 2 * covariates))
    rows[:, 0] = 1.0
    rows[:, 1 : 1 + covariates] = X
    np.multiply(X, X, out=rows[:, 1 + covariates :])
    return rows
