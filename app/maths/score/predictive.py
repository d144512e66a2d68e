"""The posterior predictive distribution of a diameter: y ~ N(m1, v1 + e^{2 f2}) with f2 ~ N(m2, v2), exactly.

In units of e^{m2} about m1 the standard deviation given Z2 = z is τ(z) = sqrt(b² + e^{2sz}), and

    P(y <= m1 + d e^{m2}) = E[Phi(d/τ(Z))].
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from app.errors import UnverifiedResult
from app.maths.moments import Array, Intervals, Moments, Real
from app.maths.score.canonical_form import TURN, Shape, Values, centres, ignore_float_warnings, spreads
from app.maths.score.quadrature import NORMAL_PEAK, REACH, Rows, grid, grouped, nodes_for
from app.maths.score.roots import Mixture, newton_quantiles

WIDE_REACH = 12.0  # far-out diameters are mostly the work of a large e^{f2}
NEWTON_STEPS = 60  # at s2 = 3 and a mass of 0.9999 it takes 20
CLOSE = 1e-12  # of r; the step after would be its square


def cdf(y: Values, moments: Moments) -> Array:
    """The predictive probability of a diameter up to y."""
    shape = np.broadcast(y, moments.m1).shape
    with ignore_float_warnings():
        return standardised_cdf(centres(y, moments, shape), *spreads(moments, 0.0, shape)).reshape(shape)


def standardised_cdf(centre: Array, b: Array, s: Array) -> Array:
    """[N] from centre = (y - m1) e^{-m2}, b = s1 e^{-m2} and s = s2, which the caller has checked."""
    result = np.empty_like(centre)
    for block in _blocks(b, s, WIDE_REACH):
        result[block.rows] = ndtr(centre[block.rows, None] / block.tau) @ block.weight
    return result


def log_density(y: Values, moments: Moments) -> Array:
    """The log predictive density of y, per mm."""
    shape = np.broadcast(y, moments.m1).shape
    d = centres(y, moments, shape)
    result = np.empty_like(d)
    for block in _blocks(*_checked(moments, shape), WIDE_REACH):
        exponent = -0.5 * (d[block.rows, None] / block.tau) ** 2 - np.log(block.tau)
        largest = exponent.max(axis=1)
        mean = np.exp(exponent - largest[:, None]) @ block.weight
        result[block.rows] = largest + np.log(NORMAL_PEAK * mean)
    return np.asarray(result.reshape(shape) - moments.m2)


def interval(moments: Moments, mass: float = 0.95) -> Intervals:
    """The central intervals m1 ± r of the given mass: E[Phi(r/τ)] = (1 + mass)/2."""
    r = np.empty_like(moments.m1)
    for block in _blocks(*_checked(moments, moments.m1.shape), REACH):
        r[block.rows] = _half_width(block, mass)
    return _around(r, moments)


def _around(r: Array, moments: Moments) -> Intervals:
    r = r * np.exp(moments.m2)
    return Intervals(moments.m1 - r, moments.m1 + r)


@dataclass(frozen=True, slots=True)
class _Block:
    """R people on one grid."""

    rows: Rows
    b: Array  # [R]
    s: Array  # [R]
    tau: Array  # [R, n]
    weight: Array  # [n]


def _checked(moments: Moments, shape: Shape) -> tuple[Array, Array]:
    with ignore_float_warnings():
        return spreads(moments, 0.0, shape)


def _blocks(b: Array, s: Array, reach: float) -> Iterator[_Block]:
    """Everyone once.

    In z, d/τ is never steeper than s|d/τ|; and where the integrand of a far-out d peaks, z = s(d/τ)², its curvature is
    1 + 2sz with z up to the reach.
    """
    needed = wide_nodes(s) if reach > REACH else nodes_for(TURN * s)
    for group in grouped(needed, np.zeros(b.size, dtype=np.intp)):
        rows, nodes = group.rows, grid(group.size, reach)
        tau = np.hypot(b[rows, None], np.exp(s[rows, None] * nodes.z))
        yield _Block(rows, b[rows], s[rows], tau, nodes.weight)


def wide_nodes(s: Real) -> Real:
    """How many nodes the grid of ±WIDE_REACH needs."""
    return nodes_for(((TURN * s) ** 2 + 2.0 * WIDE_REACH * s) ** 0.5) * (WIDE_REACH / REACH)


def _half_width(block: _Block, mass: float) -> Array:
    """r [R]: y is a mixture of normal distributions about 0."""
    zeta = np.full(block.rows.size, ndtri(0.5 + 0.5 * mass))
    with ignore_float_warnings():
        r, proved = newton_quantiles(zeta, _start(block, zeta), Mixture(0.0, 1.0 / block.tau, block.weight))
    if not proved.all():
        rest = ~proved
        r[rest] = _rising(block.tau[rest], block.weight, mass)
    return r


def _start(block: _Block, zeta: Array) -> Array:
    """r to the second order in s. Where the share `own` of a variance is that of e^{f2}, log τ varies by own·s."""
    variance = block.b**2 + 1.0
    own = 1.0 / variance
    return np.asarray(zeta * np.sqrt(variance) * (1.0 + block.s**2 * own * (1.0 - own + 0.5 * own * (zeta**2 - 1.0))))


def _rising(tau: Array, weight: Array, mass: float) -> Array:
    """r [R] by the Newton's method that rises to the root without overshooting: E[Phi(r/τ)] is concave in r > 0."""
    upper = 0.5 - 0.5 * mass
    r = -ndtri(upper) * tau[:, int(0.43 * weight.size)]  # τ at z = -1 or below, so that the start lies below the root
    for _ in range(NEWTON_STEPS):
        x = r[:, None] / -tau
        step = (ndtr(x) @ weight - upper) / (NORMAL_PEAK * ((np.exp(-0.5 * x * x) / tau) @ weight))
        r = r + step
        if (np.abs(step) <= CLOSE * r).all():
            return r
    raise UnverifiedResult("The predictive interval was not found.")
