"""Where the search for the shortest interval starts.

Any mass: T is close to T(ζ) = (a + b ζ cos φ) e^{s ζ sin φ} with one standard normal ζ and tan φ = sa/b, exactly so
with s1 = 0 or s2 = 0. The shortest interval of that lognormal shape is -σ ± c in ζ, with σ = s sin φ and
Phi(c - σ) - Phi(-c - σ) = mass.

One mass, many people: a polynomial fitted once to solved intervals, a hundred to ten thousand times closer. In units of
the spread d = hypot(b, sa) the distances of the ends from a depend on s and θ = sa/d alone. On the square
0 <= θ <= 1, 0 <= s <= 0.6 they are smooth up to its edges: s = 0 is the normal distribution, θ = 1 the lognormal one
(s1 = 0), θ = 0 the case y = m1. No rho is too large for it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from app.maths.moments import Array
from app.maths.oriented import Oriented, oriented
from app.maths.quadrature import NORMAL_PEAK

LARGEST_TABLED_S = 0.6
# Nodes in θ and s: the start is off by at most 9e-5 of the width, by 8e-6 where s2 < 0.25.
THETA_NODES, S_NODES = 24, 12
EXPONENTS = np.arange(THETA_NODES)
HALF_WIDTH_STEPS = 4  # of Newton, for c


def approximate_ends(score: Oriented, mass: float) -> Array:
    """[2, N], or [2] of one person."""
    drift = score.s * score.a
    spread = np.hypot(score.b, drift)
    sine, cosine = drift / spread, score.b / spread
    sigma = score.s * sine
    half = lognormal_half_width(sigma, mass)
    zeta = np.stack((-sigma - half, -sigma + half))
    return np.asarray((score.a + score.b * cosine * zeta) * np.exp(sigma * zeta))


def lognormal_half_width(sigma: Array, mass: float) -> Array:
    half = np.full_like(sigma, ndtri(0.5 + 0.5 * mass))
    for _ in range(HALF_WIDTH_STEPS):
        excess = ndtr(half - sigma) - ndtr(-half - sigma) - mass
        slope = np.exp(-0.5 * (half - sigma) ** 2) + np.exp(-0.5 * (half + sigma) ** 2)
        half = half - excess / (NORMAL_PEAK * slope)
    return half


@dataclass(frozen=True, slots=True)
class StartingTable:
    coefficients: Array  # [THETA_NODES, 2·S_NODES] of powers of θ and s, both taken to -1..1; the lower end's first

    @classmethod
    def fitted(cls, solve: Callable[[Oriented], Array]) -> "StartingTable":
        """From intervals that solve(score [N]) -> ends [2, N] finds at the nodes."""
        nodes = np.meshgrid(extrema(THETA_NODES), LARGEST_TABLED_S * extrema(S_NODES), indexing="ij")
        theta, s = (axis.ravel() for axis in nodes)
        a = np.where(s > 0, theta / np.where(s > 0, s, 1.0), 0.0)
        b = np.where(s > 0, np.sqrt(1.0 - theta * theta), 1.0)
        distance = (solve(oriented(a, b, s)) - a).reshape(2, THETA_NODES, S_NODES)
        along_theta = np.linalg.solve(powers(extrema(THETA_NODES), THETA_NODES), distance)
        along_s = np.linalg.solve(powers(extrema(S_NODES), S_NODES), along_theta.transpose(0, 2, 1))
        return cls(along_s.transpose(2, 0, 1).reshape(THETA_NODES, -1))

    def ends(self, score: Oriented) -> Array:
        """[2, N]; of no use where s is above LARGEST_TABLED_S."""
        drift = score.s * score.a
        spread = np.hypot(score.b, drift)
        theta = powers(np.minimum(drift / spread, 1.0), THETA_NODES)
        s = powers(np.minimum(score.s / LARGEST_TABLED_S, 1.0), S_NODES)
        distance = (theta @ self.coefficients).reshape(-1, 2, S_NODES) @ s[:, :, None]
        return np.asarray(score.a + spread * distance[:, :, 0].T)

    def ends_of_one(self, score: Oriented) -> Array:
        """[2]"""
        drift = score.s * score.a
        spread = math.hypot(score.b, drift)
        theta = (2.0 * min(drift / spread, 1.0) - 1.0) ** EXPONENTS
        s = (2.0 * score.s / LARGEST_TABLED_S - 1.0) ** EXPONENTS[:S_NODES]
        distance = (theta @ self.coefficients).reshape(2, S_NODES) @ s
        return np.asarray(score.a + spread * distance)


def extrema(count: int) -> Array:
    """Chebyshev's points on 0..1, both edges among them."""
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * np.arange(count) / (count - 1)))


def powers(x: Array, count: int) -> Array:
    """Of 2x - 1, for x [N] in 0..1: [N, count]. At these degrees they cost the start seven of its sixteen digits."""
    table = np.empty((x.size, count))
    table[:, 0] = 1.0
    table[:, 1:] = (2.0 * x - 1.0)[:, None]
    return np.asarray(np.multiply.accumulate(table, axis=1, out=table))
