"""Newton's method on {coverage = mass, log p(low) = log p(high)}, for N people at once.

With F the distribution function, p the density and g = (log p)', a correction (dl, dh) of the ends solves

    p(h) dh - p(l) dl = mass - (F(h) - F(l)),        g(l) dl - g(h) dh = log p(h) - log p(l).

One pass over a shared grid gives F, p and g at both ends. It serves as correction and as verification: convergence is
quadratic, a correction of δ widths leaves an error below 4δ² widths (seen: 2.5δ²), and so a correction of at most 2e-5
widths proves the corrected ends to 2e-9.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from app.maths.deviates import given_f1, growth, steepness, x_given_f1
from app.maths.moments import Array
from app.maths.oriented import Mask, Oriented
from app.maths.quadrature import NORMAL_PEAK, Grid, Real, grid, grouped, nodes_for, size_for

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
