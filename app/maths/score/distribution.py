"""Tails and density of the oriented score T.

Of the two tails the smaller is integrated and the larger is its complement, so that a tiny exceedance keeps its digits.

Accuracy, seen over rho 0..1e4 and s2 0..3: 2e-12 absolute; relative 3e-6 down to a tail of 1e-12, 5e-3 down to 1e-20
(1e-6 in 99 of 100), where the grid's reach of 12 standard deviations ends; below that, an order of magnitude.

Given Z1 the density is E[phi(x1)]/(st). Given Z2 it is E[e^{sZ} phi(x2(Z))]/b = e^{s²/2} E[phi(x2(Z + s))]/b: the
factor moves the normal weight by s, and the grid with it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from app.maths.moments import Array, Real
from app.maths.score.canonical_form import SCALAR_MAX_PEOPLE, Oriented, given_f1, steepness, x_given_f1, x_given_f2
from app.maths.score.quadrature import NORMAL_PEAK, REACH, grid, grouped, nodes_for, size_for

# Where t takes more than 4 standard deviations to reach, the integrand leaves the middle of the normal weight.
FAR_OUT = 4.0
FAR_REACH = 12.0
GIVEN_F1, FAR = 2, 1  # the flags of an integral's kind
FLAT = 38.0  # the normal deviate of the smallest double


@dataclass(frozen=True, slots=True)
class Tails:
    below: Array  # [N] P(T <= t)
    above: Array  # [N] P(T > t)


def tails(t: Array, score: Oriented) -> Tails:
    """For t [N]; 1/2 and 1/2 at the point itself where T is certain."""
    if t.size <= SCALAR_MAX_PEOPLE:
        found = [tails_of_one(t.item(row), score.of_one(row)) for row in range(t.size)]
        return Tails(*np.array(found).reshape(-1, 2).T)
    smaller = np.empty_like(t)
    for group in grouped(*_tail_route(t, score)):
        rows = group.rows
        smaller[rows] = smaller_tail(t[rows, None], score.columns(rows), group.size, group.kind)
    lower, larger = t < score.a, 1.0 - smaller
    return Tails(np.where(lower, smaller, larger), np.where(lower, larger, smaller))


def tails_of_one(t: float, score: Oriented) -> tuple[float, float]:
    """(below, above) for one person."""
    nodes, kind = _tail_route(t, score)
    smaller = float(smaller_tail(t, score, size_for(nodes), kind))
    return (smaller, 1.0 - smaller) if t < score.a else (1.0 - smaller, smaller)


def _tail_route(t: Real, score: Oriented) -> tuple[Real, Real]:
    """(how many nodes, which kind of integral)."""
    positive = t > 0
    on_f1 = positive & given_f1(score)
    step = 1.0 + score.s * (FAR_OUT + 0.5 * FAR_OUT**2 * score.s)  # not above exp(FAR_OUT·s)
    far = (abs(t - score.a) > FAR_OUT * score.b) & ((t > step * score.a) | (step * t < score.a))
    stretch = 1.0 + (FAR_REACH / REACH - 1.0) * far
    return nodes_for(steepness(score, on_f1, positive)) * stretch, GIVEN_F1 * on_f1 + FAR * far


def smaller_tail(t: Real, score: Oriented, size: int, kind: int) -> Real:
    """The tail on the far side of t from a, for columns [R, 1] -> [R] or for one person."""
    nodes = grid(size, FAR_REACH if kind & FAR else REACH)
    x = (x_given_f1 if kind & GIVEN_F1 else x_given_f2)(t, score, nodes.z)
    x *= 2.0 * (t < score.a) - 1.0
    return ndtr(x, out=x) @ nodes.weight


def normal_deviate(tail: Tails) -> Array:
    """The standard normal deviate with the same tails, from the smaller one; between ±FLAT."""
    lower = tail.below < tail.above
    deviate = np.maximum(ndtri(np.where(lower, tail.below, tail.above)), -FLAT)
    return np.where(lower, deviate, -deviate)


LEAST = -1e300
WIDE_REACH = 12.0  # the ends of an interval lie up to 10 standard deviations out at s2 = 3


def log_density(t: Array, score: Oriented) -> Array:
    """log p(t), for t [N]; very negative, not minus infinity, where p is 0. Exact to 1e-9 down to 1e-13 of the peak."""
    result = np.empty_like(t)
    for group in grouped(*_density_route(t, score)):
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


def _density_route(t: Real, score: Oriented) -> tuple[Real, Real]:
    positive = t > 0
    on_f1 = positive & given_f1(score)
    return nodes_for(steepness(score, on_f1, positive)) * (WIDE_REACH / REACH), 1 * on_f1
