"""The logarithm of the density of the oriented score T.

Given Z1 it is E[phi(x1)]/(st). Given Z2 it is E[e^{sZ} phi(x2(Z))]/b = e^{s²/2} E[phi(x2(Z + s))]/b: the factor moves
the normal weight by s, and the grid with it.
"""

import numpy as np

from app.maths.deviates import given_f1, steepness, x_given_f1, x_given_f2
from app.maths.moments import Array
from app.maths.oriented import Oriented
from app.maths.quadrature import NORMAL_PEAK, REACH, Real, grid, grouped, nodes_for

LEAST = -1e300
WIDE_REACH = 12.0  # the ends of an interval lie up to 10 standard deviations out at s2 = 3


def log_density(t: Array, score: Oriented) -> Array:
    """log p(t), for t [N]; very negative, not minus infinity, where p is 0. Exact to 1e-9 down to 1e-13 of the peak."""
    result = np.empty_like(t)
    for group in grouped(*route(t, score)):
        rows, nodes = group.rows, grid(group.size, WIDE_REACH)
        here, at = score.columns(rows), t[rows, None]
        if group.kind:
            x, factor = x_given_f1(at, here, nodes.z), -np.log(here.s * at)
        else:
            x, factor = x_given_f2(at, here, nodes.z + here.s), 0.5 * here.s * here.s - np.log(here.b)
        result[rows] = log_mean_bell(x, nodes.weight) + np.reshape(factor, -1)
    return result


def log_mean_bell(x: Array, weight: Array) -> Array:
    """log E[phi(x)] for x [..., n]: the nearest x is taken out, so that nothing underflows to 0."""
    exponent = np.maximum(-0.5 * x * x, LEAST)
    largest = exponent.max(axis=-1)
    return np.asarray(largest + np.log(NORMAL_PEAK * (np.exp(exponent - largest[..., None]) @ weight)))


def route(t: Real, score: Oriented) -> tuple[Real, Real]:
    positive = t > 0
    on_f1 = positive & given_f1(score)
    return nodes_for(steepness(score, on_f1, positive)) * (WIDE_REACH / REACH), 1 * on_f1
