"""The highest-density interval of the oriented score T: the shortest interval of a given mass.

The density of T has one mode, whatever a, b and s. On t > 0 it is, as a function of log t, the convolution of
phi((e^w - a)/b), which rises and then falls, with a normal density, and such a convolution adds no change of direction;
on t < 0 the same argument shows it rising throughout; at 0 its slope is not negative. Therefore the shortest interval
is unique, and the right mass together with equal density at both ends identifies it.

Newton's method solves {coverage = mass, log p(low) = log p(high)} for N people at once and verifies the result. What it
does not verify goes to the nested search of hdi_search.py, which proves its own answer or raises.

With F the distribution function, p the density and g = (log p)', a correction (dl, dh) of the ends solves

    p(h) dh - p(l) dl = mass - (F(h) - F(l)),        g(l) dl - g(h) dh = log p(h) - log p(l).

One pass over a shared grid gives F, p and g at both ends. It serves as correction and as verification: convergence is
quadratic, a correction of δ widths leaves an error below 4δ² widths (seen: 2.5δ²), and so a correction of at most 2e-5
widths proves the corrected ends to 2e-9.

It starts from one of two approximations. Any mass: T is close to T(ζ) = (a + b ζ cos φ) e^{s ζ sin φ} with one standard
normal ζ and tan φ = sa/b, exactly so with s1 = 0 or s2 = 0. The shortest interval of that lognormal shape is -σ ± c in
ζ, with σ = s sin φ and Phi(c - σ) - Phi(-c - σ) = mass.

One mass, many people: a polynomial fitted once to solved intervals, a hundred to ten thousand times closer. In units of
the spread d = hypot(b, sa) the distances of the ends from a depend on s and θ = sa/d alone. On the square
0 <= θ <= 1, 0 <= s <= 0.6 they are smooth up to its edges: s = 0 is the normal distribution, θ = 1 the lognormal one
(s1 = 0), θ = 0 the case y = m1. No rho is too large for it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from app.maths.moments import Array, Real
from app.maths.score.canonical_form import (
    Mask,
    Oriented,
    given_f1,
    growth,
    ignore_float_warnings,
    oriented,
    steepness,
    x_given_f1,
)
from app.maths.score.hdi_search import safe_ends
from app.maths.score.quadrature import NORMAL_PEAK, Grid, grid, grouped, nodes_for, size_for

TABLED_MASS = 0.95
TABLE_ROWS = 1024  # people whose powers of θ and s stay in the cache
# So narrow a T is normal to 1e-9 of its width, and the digits of a leave no room to verify more.
NARROW = 1e-9
SMALL_CORRECTION = 2e-5
SMALL_CHANGE = 5e-4  # of log p; a correction of 2e-5 widths makes it 1.6e-4 where T is normal
ROUNDING = 4 * float(np.finfo(float).eps)  # of |t|
STEPS = 12
# Given Z2 the lower end's integrand has its mass up to 2s + ndtri((1 + mass)/2) from the middle of the grid, and within
# 2.3 of its end it loses more than 1e-9.
FARTHEST_GIVEN_F2 = 4.7
GIVEN_F1, UNSUITED = 1, 2  # kinds of integral


@dataclass(frozen=True, slots=True)
class Ends:
    """Integrals at both ends of R intervals [2, R], or of one [2], from which F, p and g follow."""

    below: Array  # F
    mean: Array  # p = mean·phi(0)/unit
    tilt: Array  # g = -tilt/(mean·unit), less 1/t given Z1
    unit: Array


def refine(ends: Array, score: Oriented, mass: float, steps: int = STEPS) -> tuple[Array, Mask]:
    """Ends [2, N] moved to the shortest intervals, and which of them are verified [N]."""
    moved, verified = np.full_like(ends, np.nan), np.zeros(ends.shape[1], dtype=bool)
    for group in grouped(*route(score, mass)):
        rows = group.rows
        if group.kind != UNSUITED:
            moved[0, rows], moved[1, rows], verified[rows] = corrected(
                ends[:, rows], score.columns(rows), group.size, group.kind, mass
            )
    if steps > 1 and not verified.all():
        rest = np.flatnonzero(~verified & (moved[0] < moved[1]))
        if rest.size:
            moved[:, rest], verified[rest] = refine(moved[:, rest], score[rest], mass, steps - 1)
    return moved, verified


def refine_one(ends: Array, score: Oriented, mass: float) -> tuple[float, float] | None:
    """The same for one person's ends [2]; None if they are not verified."""
    nodes, kind = route(score, mass)
    if kind == UNSUITED:
        return None
    for _ in range(STEPS):
        low, high, verified = corrected(ends, score, size_for(nodes), kind, mass)
        if verified:
            return low, high
        ends = np.array((low, high))
    return None


def route(score: Oriented, mass: float) -> tuple[Real, Real]:
    """(how many nodes, which kind of integral)."""
    on_f1 = given_f1(score)
    unsuited = (2.0 * score.s > FARTHEST_GIVEN_F2 - float(ndtri(0.5 + 0.5 * mass))) & (on_f1 == 0)
    return nodes_for(steepness(score, on_f1)), GIVEN_F1 * on_f1 + UNSUITED * unsuited


def corrected(t: Array, score: Oriented, size: int, kind: int, mass: float) -> tuple[Real, Real, Real]:
    """(low, high, whether this proves them) from ends t [2, R] or [2]."""
    ends = (ends_given_f1 if kind == GIVEN_F1 else ends_given_f2)(t[..., None], score, grid(size))
    low, high = both(t)
    (below_low, below_high), (mean_low, mean_high) = both(ends.below), both(ends.mean)
    (tilt_low, tilt_high), (unit_low, unit_high) = both(ends.tilt), both(ends.unit)
    p_low, p_high = NORMAL_PEAK * mean_low / unit_low, NORMAL_PEAK * mean_high / unit_high
    g_low, g_high = -tilt_low / (mean_low * unit_low), -tilt_high / (mean_high * unit_high)
    if kind == GIVEN_F1:
        g_low, g_high = g_low - 1.0 / low, g_high - 1.0 / high
    missing, uneven = mass - (below_high - below_low), np.log(p_high / p_low)
    common = p_high * g_low - p_low * g_high
    step_low = (g_high * missing + p_high * uneven) / common
    step_high = (g_low * missing + p_low * uneven) / common
    low, high = low + step_low, high + step_high
    return low, high, small(step_low, low, g_low, high - low) & small(step_high, high, g_high, high - low)


def small(step: Real, t: Real, slope: Real, width: Real) -> Real:
    """Beside the width, and beside the distance over which the density changes: near a sharp peak that is shorter."""
    size = abs(step)
    return (size <= SMALL_CORRECTION * width + ROUNDING * abs(t)) & (size * abs(slope) <= SMALL_CHANGE)


def both(values: Array) -> Real:
    """The two ends' values: floats for one person, arrays for many."""
    return values.tolist() if values.ndim == 1 else values


def ends_given_f2(t: Array, score: Oriented, nodes: Grid) -> Ends:
    """F = E[Phi(x)], p = E[e^{sz} phi(x)]/b, p' = -E[e^{2sz} x phi(x)]/b², for t [2, R, 1] or [2, 1]."""
    factor = growth(score, nodes.z)
    x = factor * (t / score.b)
    x += (t - score.a) / score.b
    factor += 1.0
    bell = exp_half_square(x)
    bell *= factor
    mean = bell @ nodes.weight
    bell *= factor
    bell *= x
    return Ends(ndtr(x, out=x) @ nodes.weight, mean, bell @ nodes.weight, (score.b + 0.0 * t)[..., 0])


def ends_given_f1(t: Array, score: Oriented, nodes: Grid) -> Ends:
    """F = E[Phi(x)], p = E[phi(x)]/(st), p' = -E[(x + s) phi(x)]/(st)², for t [2, R, 1] or [2, 1]."""
    x = x_given_f1(t, score, nodes.z)
    bell = exp_half_square(x)
    mean = bell @ nodes.weight
    bell *= x
    return Ends(ndtr(x, out=x) @ nodes.weight, mean, bell @ nodes.weight, (score.s * t)[..., 0])


def exp_half_square(x: Array) -> Array:
    """exp(-x²/2)"""
    bell = x * x
    bell *= -0.5
    return np.asarray(np.exp(bell, out=bell))


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


def shortest_ends(score: Oriented, mass: float) -> Array:
    """[2, N]"""
    if mass != TABLED_MASS:
        return settled(approximate_ends(score, mass), score, mass)
    ends, table = np.empty((2, score.a.size)), starting_table()
    for first in range(0, score.a.size, TABLE_ROWS):
        rows = slice(first, first + TABLE_ROWS)
        ends[:, rows] = table.ends(score[rows])
    beyond = np.flatnonzero(score.s > LARGEST_TABLED_S)
    ends[:, beyond] = approximate_ends(score[beyond], mass)
    return settled(ends, score, mass)


def shortest_of_one(score: Oriented, mass: float) -> tuple[float, float]:
    """The same for one person."""
    tabled = mass == TABLED_MASS and score.s <= LARGEST_TABLED_S
    start = starting_table().ends_of_one(score) if tabled else approximate_ends(score, mass)
    try:
        found = refine_one(start, score, mass)
    except ZeroDivisionError:  # a density that vanished: for arrays a NaN, which is not verified either
        found = None
    if found is None:
        low, high = safe_shortest_ends(oriented(*(np.array([value]) for value in (score.a, score.b, score.s))), mass)
        found = low.item(), high.item()
    return found


def settled(ends: Array, score: Oriented, mass: float) -> Array:
    """The shortest intervals [2, N], from ends near them."""
    ends, verified = refine(ends, score, mass)
    if not verified.all():
        rest = np.flatnonzero(~verified)
        ends[:, rest] = safe_shortest_ends(score[rest], mass)
    return ends


def safe_shortest_ends(score: Oriented, mass: float) -> Array:
    ends = approximate_ends(score, mass)
    wide = np.flatnonzero(np.hypot(score.b, score.s * score.a) > NARROW * score.a)
    if wide.size:
        ends[:, wide] = safe_ends(score[wide], mass)
    return ends


@lru_cache(maxsize=1)
def starting_table() -> StartingTable:
    """Made once in a process, in about 0.02 s."""
    with ignore_float_warnings():
        return StartingTable.fitted(lambda score: settled(approximate_ends(score, TABLED_MASS), score, TABLED_MASS))
