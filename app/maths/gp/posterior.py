"""The sparse posterior of a trained model as a few frozen arrays, and its prediction.

A whitened SVGP has inducing inputs Z, Kuu + jitter·I = L Lᵀ and q(v) = N(q_mu, S) for u = L v. At a person x with
k = k(Z, x) = variance · g it predicts

    mean      c + kᵀ L⁻ᵀ q_mu                     = c + gᵀ w
    variance  k(x, x) - kᵀ L⁻ᵀ (I - S) L⁻¹ k      = variance - Σ_j d_j (gᵀ P)_j²

with I - S = U diag(d) Uᵀ. One product with P therefore serves prior and q at once, and a negative d (q wider than
the prior) needs no case of its own. The quadratic form stays in the basis of L: multiplied out to one symmetric
matrix it would lose three more digits.

`Scaling` is the standardisation that a model was trained in; `NamedArrays` reads the stored arrays with checks.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from app.maths.gp.kernels import Kernel, Kernels, features
from app.maths.moments import Array, Moments, freeze


class NamedArrays:
    """Arrays taken by name, each exactly once. Every error is a ValueError that begins with the array's name."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._left = dict(arrays)

    def take(self, name: str, shape: tuple[int | None, ...], *, above: float = -np.inf) -> Array:
        """A copy of the array, finite float64, each number greater than `above`; None in `shape`: any length."""
        if name not in self._left:
            raise ValueError(f"{name}: is missing")
        array = self._left.pop(name)
        if array.dtype != np.float64:
            raise ValueError(f"{name}: holds {array.dtype}, not float64")
        if array.ndim != len(shape) or array.shape != tuple(
            have if want is None else want for want, have in zip(shape, array.shape, strict=True)
        ):
            raise ValueError(f"{name}: has shape {array.shape}, not {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: holds a number that is not finite")
        if not (array > above).all():
            raise ValueError(f"{name}: holds a number that is not above {above:g}")
        return np.array(array)

    def number(self, name: str, *, above: float = -np.inf) -> float:
        return float(self.take(name, (), above=above))

    def finish(self) -> None:
        """Raise for arrays that were not taken."""
        for name in sorted(self._left):
            raise ValueError(f"{name}: does not belong here")


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """x -> (x - x_mean) / x_sd and y -> (y - y_center) / y_scale."""

    x_mean: Array  # [D]
    x_sd: Array  # [D]
    y_center: float  # mm
    y_scale: float  # mm

    def __post_init__(self) -> None:
        freeze(self.x_mean, self.x_sd)

    @classmethod
    def of(cls, X: Array, y: Array) -> "Scaling":
        """From training people: mean and sd of each covariate, median and sd of y (a few wild y move a mean)."""
        return cls(X.mean(axis=0), _spread(X), float(np.median(y)), float(_spread(y)))

    def standardise(self, X: Array) -> Array:
        return (X - self.x_mean) / self.x_sd

    def standardise_y(self, y: Array) -> Array:
        return (y - self.y_center) / self.y_scale

    def arrays(self) -> dict[str, Array]:
        return {
            "x_mean": self.x_mean,
            "x_sd": self.x_sd,
            "y_center": np.array(self.y_center),
            "y_scale": np.array(self.y_scale),
        }

    @classmethod
    def from_arrays(cls, arrays: NamedArrays) -> "Scaling":
        x_mean = arrays.take("x_mean", (None,))
        x_sd = arrays.take("x_sd", x_mean.shape, above=0.0)
        return cls(x_mean, x_sd, arrays.number("y_center"), arrays.number("y_scale", above=0.0))


def _spread(values: Array) -> Array:
    """Standard deviation along the people; a column that never varies (but for rounding) keeps its own unit."""
    sd = values.std(axis=0)
    return np.where(sd > 1e-12 * np.abs(values).max(axis=0), sd, 1.0)


# Rows predicted at a time. At 55 inducing points the matrices of a block (0.2 MB each) stay in the cache; 256 to
# 1024 rows were equally fast within the noise, 128 a tenth slower.
BLOCK_ROWS = 512


@dataclass(frozen=True, slots=True, eq=False)
class SparseGP:
    """One latent function in standardised units. With M = 0 and variance 0 it is exactly its constant mean."""

    kernel: Kernel
    mean: float  # c
    Z: Array  # [M, D] inducing inputs
    weights: Array  # [M] w = variance · L⁻ᵀ q_mu
    projection: Array  # [M, M] P = variance · L⁻ᵀ U
    reduction: Array  # [M] d, how much narrower than the prior q is in each direction, at most 1
    landmarks: Array = field(init=False, repr=False)  # [1 + 2 D, M] derived from kernel and Z

    def __post_init__(self) -> None:
        object.__setattr__(self, "landmarks", self.kernel.landmarks(self.Z))
        freeze(self.Z, self.weights, self.projection, self.reduction, self.landmarks)

    @classmethod
    def whitened(cls, kernel: Kernel, mean: float, Z: Array, q_mu: Array, q_sqrt: Array, jitter: float) -> "SparseGP":
        """From q(v) = N(q_mu [M], q_sqrt q_sqrtᵀ [M, M]) and the jitter that the training used."""
        identity = np.eye(len(Z))
        lower = cholesky(kernel.matrix(Z, Z) + jitter * identity, lower=True)
        reduction, rotation = eigh(identity - q_sqrt @ q_sqrt.T)
        both = kernel.variance * solve_triangular(lower, np.column_stack([q_mu, rotation]), lower=True, trans="T")
        return cls(kernel, mean, Z.copy(), both[:, 0].copy(), np.ascontiguousarray(both[:, 1:]), reduction)

    @classmethod
    def constant(cls, kernel_name: str, mean: float, covariates: int) -> "SparseGP":
        kernel = Kernel(kernel_name, 0.0, np.ones(covariates))
        return cls(kernel, mean, np.empty((0, covariates)), np.empty(0), np.empty((0, 0)), np.empty(0))

    def sums(self, g: Array, out: Array | None) -> tuple[Array, Array]:
        """gᵀ w and Σ_j d_j (gᵀ P)_j² from the correlations g [N, M] or [M]; `out` is room for as many numbers."""
        # np.dot rather than @: the same BLAS call with a third of the overhead, half of one patient's time.
        projected = np.dot(g, self.projection, out=out)
        projected *= projected
        return np.dot(g, self.weights), np.dot(projected, self.reduction)

    def arrays(self, prefix: str) -> dict[str, Array]:
        parts = {
            "variance": np.array(self.kernel.variance),
            "lengthscales": self.kernel.lengthscales,
            "alpha": np.array(self.kernel.alpha),
            "mean": np.array(self.mean),
            "Z": self.Z,
            "weights": self.weights,
            "projection": self.projection,
            "reduction": self.reduction,
        }
        return {f"{prefix}_{name}": array for name, array in parts.items()}

    @classmethod
    def from_arrays(cls, arrays: NamedArrays, prefix: str, kernel_name: str, covariates: int) -> "SparseGP":
        Z = arrays.take(f"{prefix}_Z", (None, covariates))
        points = len(Z)
        kernel = Kernel(
            kernel_name,
            arrays.number(f"{prefix}_variance", above=0.0 if points else -math.ulp(0.0)),
            arrays.take(f"{prefix}_lengthscales", (covariates,), above=0.0),
            arrays.number(f"{prefix}_alpha", above=0.0),
        )
        return cls(
            kernel,
            arrays.number(f"{prefix}_mean"),
            Z,
            arrays.take(f"{prefix}_weights", (points,)),
            arrays.take(f"{prefix}_projection", (points, points)),
            arrays.take(f"{prefix}_reduction", (points,)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class HeteroscedasticPosterior:
    """Both latent functions with their units: raw covariates in, moments in mm out."""

    scaling: Scaling
    f1: SparseGP
    f2: SparseGP
    kernels: Kernels = field(init=False, repr=False)  # of both, evaluated together
    # From the sums of both functions to (m1, v1, m2, v2) in mm is one affine map, shift + factor · sums.
    shift: Array = field(init=False, repr=False)  # [4, 1]
    factor: Array = field(init=False, repr=False)  # [4, 1]

    def __post_init__(self) -> None:
        center, scale = self.scaling.y_center, self.scaling.y_scale
        shift = (
            center + scale * self.f1.mean,
            scale**2 * self.f1.kernel.variance,
            math.log(scale) + self.f2.mean,
            self.f2.kernel.variance,
        )
        object.__setattr__(self, "kernels", Kernels.of((self.f1.kernel, self.f1.Z), (self.f2.kernel, self.f2.Z)))
        object.__setattr__(self, "shift", np.array(shift)[:, None])
        object.__setattr__(self, "factor", np.array((scale, -(scale**2), 1.0, -1.0))[:, None])

    def arrays(self) -> dict[str, Array]:
        """Everything but the kernel's name, as float64 arrays by name."""
        return self.scaling.arrays() | self.f1.arrays("f1") | self.f2.arrays("f2")

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], kernel: str) -> "HeteroscedasticPosterior":
        """The inverse of `arrays`. A ValueError names the array that is missing, surplus, misshapen or not finite."""
        named = NamedArrays(arrays)
        scaling = Scaling.from_arrays(named)
        f1, f2 = (SparseGP.from_arrays(named, name, kernel, len(scaling.x_mean)) for name in ("f1", "f2"))
        named.finish()
        return cls(scaling, f1, f2)

    @property
    def covariates(self) -> int:
        return len(self.scaling.x_mean)

    def predict(self, X: Array) -> Moments:
        """Moments of N people from raw covariates X [N, D]; beyond the answer the memory does not grow with N."""
        if X.ndim != 2 or X.shape[1] != self.covariates:
            raise ValueError(f"covariates have shape {X.shape}, not [N, {self.covariates}]")
        moments = self._sums_of_one(X[0]) if len(X) == 1 else self._sums(X)
        moments *= self.factor
        moments += self.shift
        m1, v1, m2, v2 = moments
        # Variances are positive but for rounding, and everything after this takes their square roots.
        return Moments(m1, np.maximum(v1, 0.0, out=v1), m2, np.maximum(v2, 0.0, out=v2))

    def _sums_of_one(self, x: Array) -> Array:
        """[4, 1] for x [D]: the same with vectors, and as few calls of NumPy as it takes."""
        mean, sd = self.scaling.x_mean.tolist(), self.scaling.x_sd.tolist()
        standardised = [(value - m) / s for value, m, s in zip(x.tolist(), mean, sd, strict=True)]
        row = np.array([1.0, *standardised, *[value * value for value in standardised]])
        g, points = self.kernels.correlations(row, None), len(self.f1.Z)
        sums = (*self.f1.sums(g[:points], None), *self.f2.sums(g[points:], None))
        return np.array(sums)[:, None]

    def _sums(self, X: Array) -> Array:
        """[4, N]"""
        block, points = min(len(X), BLOCK_ROWS), len(self.f1.Z)
        # Allocating new memory for each block doubled the time.
        space = np.empty((block, points + len(self.f2.Z)))
        space1, space2 = np.empty((block, points)), np.empty((block, len(self.f2.Z)))
        sums = np.empty((4, len(X)))
        for start in range(0, len(X), BLOCK_ROWS):
            here = slice(start, start + BLOCK_ROWS)
            rows = features(self.scaling.standardise(X[here]))
            people = len(rows)
            g = self.kernels.correlations(rows, space[:people])
            sums[0, here], sums[1, here] = self.f1.sums(g[:, :points], space1[:people])
            sums[2, here], sums[3, here] = self.f2.sums(g[:, points:], space2[:people])
        return sums
