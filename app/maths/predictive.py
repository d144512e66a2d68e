"""The posterior predictive distribution of a diameter: y ~ N(m1, v1 + e^{2 f2}) with f2 ~ N(m2, v2), exactly.

In units of e^{m2} about m1 the standard deviation given Z2 = z is τ(z) = sqrt(b² + e^{2sz}), and

    P(y <= m1 + d e^{m2}) = E[Phi(d/τ(Z))].
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr, ndtri

from app.errors import NumbersNotTrusted
from app.maths.deviates import TURN
from app.maths.intervals import Intervals
from app.maths.moments import Array, Moments
from app.maths.oriented import Shape, Values, flat, limits_allowed, spreads
from app.maths.quadrature import NORMAL_PEAK, REACH, Rows, grid, grouped, nodes_for

WIDE_REACH = 12.0  # far-out diameters are mostly the work of a large e^{f2}
NEWTON_STEPS = 60  # 3 to 6 are taken; at s2 = 3 and a mass of 0.9999 it is 20
CLOSE = 1e-12  # of r; the step after would be its square


def cdf(y: Values, moments: Moments) -> Array:
    """The predictive probability of a diameter up to y."""
    shape = np.broadcast(y, moments.m1).shape
    d = flat((y - moments.m1) * np.exp(-moments.m2), shape)
    result = np.empty_like(d)
    for rows, tau, weight in _spreads(moments, shape, WIDE_REACH):
        result[rows] = ndtr(d[rows, None] / tau) @ weight
    return result.reshape(shape)


def log_density(y: Values, moments: Moments) -> Array:
    """The log predictive density of y, per mm."""
    shape = np.broadcast(y, moments.m1).shape
    d = flat((y - moments.m1) * np.exp(-moments.m2), shape)
    result = np.empty_like(d)
    for rows, tau, weight in _spreads(moments, shape, WIDE_REACH):
        exponent = -0.5 * (d[rows, None] / tau) ** 2 - np.log(tau)
        largest = exponent.max(axis=1)
        result[rows] = largest + np.log(NORMAL_PEAK * (np.exp(exponent - largest[:, None]) @ weight))
    return np.asarray(result.reshape(shape) - moments.m2)


def interval(moments: Moments, mass: float = 0.95) -> Intervals:
    """The central intervals m1 ± r of the given mass: E[Phi(r/τ)] = (1 + mass)/2."""
    r = np.empty_like(moments.m1)
    for rows, tau, weight in _spreads(moments, moments.m1.shape, REACH):
        r[rows] = _half_width(tau, weight, mass)
    r *= np.exp(moments.m2)
    return Intervals(moments.m1 - r, moments.m1 + r)


def _spreads(moments: Moments, shape: Shape, reach: float) -> Iterator[tuple[Rows, Array, Array]]:
    """Everyone once: (rows, τ [R, n], weights [n]).

    In z, d/τ is never steeper than s|d/τ|; and where the integrand of a far-out d peaks, z = s(d/τ)², its curvature is
    1 + 2sz with z up to the reach.
    """
    with limits_allowed():
        b, s = spreads(moments, 0.0, shape)
    steepness = np.sqrt((TURN * s) ** 2 + (2.0 * reach * s if reach > REACH else 0.0))
    for group in grouped(nodes_for(steepness) * (reach / REACH), np.zeros(b.size, dtype=np.intp)):
        rows, nodes = group.rows, grid(group.size, reach)
        yield rows, np.hypot(b[rows, None], np.exp(s[rows, None] * nodes.z)), nodes.weight


def _half_width(tau: Array, weight: Array, mass: float) -> Array:
    """r [R] by Newton's method, which rises to the root without overshooting: E[Phi(r/τ)] is concave in r > 0."""
    upper = 0.5 - 0.5 * mass
    r = -ndtri(upper) * tau[:, int(0.43 * weight.size)]  # τ at z = -1, so that the start lies below the root
    for _ in range(NEWTON_STEPS):
        x = r[:, None] / -tau
        step = (ndtr(x) @ weight - upper) / (NORMAL_PEAK * ((np.exp(-0.5 * x * x) / tau) @ weight))
        r = r + step
        if (np.abs(step) <= CLOSE * r).all():
            return r
    raise NumbersNotTrusted("The predictive interval was not found.")
