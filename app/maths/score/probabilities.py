"""All probabilities of an answer on one grid: both sides of every threshold, and the percentile of the diameter.

Given Z2 = z, the event T <= t has the probability Phi((t e^{sz} - a)/b), and a diameter up to y has
Phi(centre/hypot(b, e^{sz})): e^{sz} on one grid of ±12 serves them all. Far from 0, where that takes too many nodes and
Z1 is the better variable (`given_f1`), each of them is integrated by itself.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from app.maths.moments import Array, Real
from app.maths.score.canonical_form import TURN, Oriented, given_f1, growth, oriented
from app.maths.score.normalcy import both_sides, both_sides_of_one
from app.maths.score.predictive import WIDE_REACH, standardised_cdf, wide_nodes
from app.maths.score.quadrature import REACH, grid, grouped, nodes_for, size_for

POSITION_LIMITS = (2.0, -2.0)
# For t <= 0, T <= t needs Z1 >= rho: beyond this rho it has a probability below 1e-21, and no position rests on it.
CERTAIN_RHO = 9.5
STEEPEST = 6.0  # along Z2 with 176 nodes


class Probabilities(NamedTuple):
    """Arrays for N people; floats and lists [T] for one."""

    above: Real  # [T, N] P(NS > t)
    below: Real  # [T, N] P(NS < t); each keeps its digits in its own tail
    above_2: Real  # [N] P(NS > 2)
    below_minus_2: Real  # [N] P(NS < -2)
    percentile: Real  # [N] of the diameter, 0 to 100


def probabilities(thresholds: tuple[float, ...], centre: Array, b: Array, s: Array) -> Probabilities:
    """From centre = (y - m1) e^{-m2}, b = s1 e^{-m2} and s = s2, which the caller has checked."""
    asked = _asked(thresholds)
    score, sign = oriented(np.abs(centre), b, s), np.copysign(1.0, centre)
    below, above = np.empty((2, len(asked), centre.size))
    cdf = np.empty_like(centre)
    separate = _is_too_steep(score) | score.is_point
    for group in grouped(np.where(separate, 0.0, _nodes(score)), 1 * separate):
        rows = group.rows
        if group.kind:
            every = np.tile(rows, len(asked))
            sides = both_sides(np.repeat(asked, rows.size), score[every], sign[every])
            below[:, rows], above[:, rows] = sides.reshape(2, len(asked), -1)
            cdf[rows] = standardised_cdf(centre[rows], b[rows], s[rows])
        else:
            below[:, rows], above[:, rows], cdf[rows] = _on_one_grid(
                np.array(asked), score[rows], sign[rows], group.size
            )
    for k, limit in enumerate(asked[len(thresholds) :], len(thresholds)):
        empty = (score.rho > CERTAIN_RHO) & (sign * limit < 0.0)
        below[k, empty] = above[k, empty] = 0.0
    count = len(thresholds)
    return Probabilities(
        above[:count],
        below[:count],
        above[asked.index(2.0)],
        below[asked.index(-2.0)],
        100.0 * np.minimum(cdf, 1.0),  # quadrature may end 4e-16 beyond
    )


def _on_one_grid(asked: Array, score: Oriented, sign: Array, size: int) -> tuple[Array, Array, Array]:
    """(below [L, R], above [L, R], predictive probability [R]) of R people and L thresholds."""
    t = sign * asked[:, None]
    lower = t < score.a
    toward = (2.0 * lower - 1.0) / score.b  # the smaller tail is integrated
    nodes, people = grid(size, WIDE_REACH), score.columns(slice(None))
    x = np.empty((len(asked) + 1, sign.size, size))
    e = growth(people, nodes.z)
    np.multiply((toward * t)[..., None], e, out=x[:-1])
    x[:-1] += (toward * (t - score.a))[..., None]
    np.divide((sign * score.a)[:, None], _spread(e, people.b), out=x[-1])
    found = ndtr(x, out=x) @ nodes.weight
    smaller = found[:-1]
    is_below = lower == (sign > 0.0)
    return np.where(is_below, smaller, 1.0 - smaller), np.where(is_below, 1.0 - smaller, smaller), found[-1]


def probabilities_of_one(thresholds: tuple[float, ...], score: Oriented, sign: float) -> Probabilities:
    """The same with floats, for one person whose score is no point."""
    asked = _asked(thresholds)
    if _is_too_steep(score):
        found = [both_sides_of_one(t, score, sign) for t in asked]
        centre = np.array([sign * score.a])
        cdf = standardised_cdf(centre, np.array([score.b]), np.array([score.s])).item()
    else:
        found, cdf = _on_one_grid_of_one(asked, score, sign)
    for k, limit in enumerate(asked[len(thresholds) :], len(thresholds)):
        if score.rho > CERTAIN_RHO and sign * limit < 0.0:
            found[k] = (0.0, 0.0)
    return Probabilities(
        [above for _, above in found[: len(thresholds)]],
        [below for below, _ in found[: len(thresholds)]],
        found[asked.index(2.0)][1],
        found[asked.index(-2.0)][0],
        100.0 * min(cdf, 1.0),
    )


def _on_one_grid_of_one(
    asked: tuple[float, ...], score: Oriented, sign: float
) -> tuple[list[tuple[float, float]], float]:
    a, b = score.a, score.b
    lines, is_below = [], []
    for t in asked:
        distance = sign * t - a
        toward = (1.0 if distance < 0.0 else -1.0) / b
        lines.append((toward * sign * t, toward * distance))
        is_below.append((distance < 0.0) == (sign > 0.0))
    nodes = grid(size_for(_nodes(score)), WIDE_REACH)
    x = np.empty((len(asked) + 1, nodes.z.size))
    e = growth(score, nodes.z)
    for row, (slope, offset) in enumerate(lines):
        np.multiply(e, slope, out=x[row])
        x[row] += offset
    np.divide(sign * a, _spread(e, b), out=x[-1])
    *smaller, cdf = (ndtr(x, out=x) @ nodes.weight).tolist()
    pairs = zip(smaller, is_below, strict=True)
    return [(tail, 1.0 - tail) if first else (1.0 - tail, tail) for tail, first in pairs], cdf


def _spread(growth: Array, b: Real) -> Array:
    """hypot(1 + growth, b), written into `growth`. Neither square can overflow; np.hypot takes four times as long."""
    growth += 1.0
    growth *= growth
    growth += b * b
    return np.sqrt(growth, out=growth)


def _asked(thresholds: tuple[float, ...]) -> tuple[float, ...]:
    """The thresholds, and the limits of a position that are not among them."""
    return (*thresholds, *[limit for limit in POSITION_LIMITS if limit not in thresholds])


def _is_too_steep(score: Oriented) -> Real:
    return given_f1(score) & (score.s * (score.rho + TURN) > STEEPEST)


def _nodes(score: Oriented) -> Real:
    """How many nodes the grid of ±12 needs; along a positive t the score is steepest."""
    steep = nodes_for(score.s * (score.rho + TURN)) * (WIDE_REACH / REACH)
    wide = wide_nodes(score.s)
    return max(steep, wide) if isinstance(steep, float) else np.maximum(steep, wide)
