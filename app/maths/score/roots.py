"""Roots of N increasing functions at once, and quantiles of N mixtures of normal distributions.

A sum over the nodes of a grid, P(W <= w) = Σ_j weight_j Phi((w - centre_j)/spread_j), is what both the predictive
distribution of a diameter and the diameter at a threshold come down to. The normal deviate G(w) of that probability is
nearly a straight line, so that two evaluations suffice: with Halley's step

    dw = n / (1 + n G''/2G'),   n = (ζ - G)/G',

a miss of δ deviates leaves one below 10δ³ (seen up to s2 = 3: 6δ³), and so a miss of at most 2e-5 proves the w that
follows it to 1e-13 deviates. What is not proved is for a slower search.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from app.errors import UnverifiedResult
from app.maths.moments import Array, Real
from app.maths.score.canonical_form import Mask

Increasing = Callable[[Array, NDArray[np.intp]], Array]  # (x [R], which R of the N functions) -> values [R]

STEPS = 200  # halving alone needs 60 for the widest bracket, and at most every second step gains less
CLOSE = 1e-15  # of 1 + |x|


def increasing_root(function: Increasing, start: Array, low: Array, high: Array) -> Array:
    """The x [N] between low and high where each function passes 0.

    Secant steps, the first with slope 1, inside a bracket that only shrinks. A step that did not halve the function's
    value is followed by one that halves the bracket, so that no function can stall the search. Two secant steps in a
    row end it if one more of their ratio is within CLOSE: the next ratio is smaller still.
    """
    root, rows = np.empty_like(start), np.arange(start.size)
    x, value, length = start, np.full_like(start, np.inf), np.ones_like(start)
    trusted = np.zeros(start.size, dtype=bool)
    with np.errstate(all="ignore"):  # a flat function has no secant: infinite or not a number, it is not trusted
        for step in range(STEPS):
            last_value, value = value, function(x, rows)
            low, high = np.where(value <= 0, x, low), np.where(value >= 0, x, high)
            secant = -value * length / (value - last_value) if step else -value
            inside = (x + secant >= low) & (x + secant <= high)
            twice, trusted = trusted, inside & (np.abs(value) <= 0.5 * np.abs(last_value))
            last_length, length = length, np.where(trusted, secant, 0.5 * (low + high) - x)
            close = CLOSE * (1.0 + np.abs(x))
            done = (np.abs(length) <= close) & (trusted | (high - low <= close) | (value == 0))
            done |= trusted & twice & (length**2 <= close * np.abs(last_length))
            x = x + length
            root[rows[done]] = x[done]
            if done.all():
                return root
            if not done.any():
                continue
            more = ~done
            rows, low, high, trusted = rows[more], low[more], high[more], trusted[more]
            x, value, length = x[more], value[more], length[more]
    raise UnverifiedResult(f"No root was found for {rows.size} of {start.size} people.")


NEWTON_STEPS = 8  # 2 are taken where s2 is that of a model of the aorta
SMALL_MISS = 2e-5  # normal deviates


@dataclass(frozen=True, slots=True)
class Mixture:
    """Given the node, W ~ N(centre, 1/precision²). Both broadcast to [R, n]."""

    centre: Real
    precision: Array
    weight: Array  # [n]


def newton_quantiles(zeta: Array, start: Array, mixture: Mixture) -> tuple[Array, Mask]:
    """The w [R] whose probabilities have the normal deviates ζ [R], from a start near them; and which are proved."""
    w, proved = start, np.zeros(zeta.size, dtype=bool)
    for _ in range(NEWTON_STEPS):
        deviate, slope, bend = _deviate(w, zeta > 0, mixture)
        miss = zeta - deviate
        step = miss / slope
        w = w + step / (1.0 + 0.5 * step * bend / slope)
        proved = np.abs(miss) <= SMALL_MISS
        if proved.all():
            break
    return w, proved & np.isfinite(w)


def _deviate(w: Array, upper: Mask, mixture: Mixture) -> tuple[Array, Array, Array]:
    """G, G' and G'' at w [R]. With p the density of W, G' = p/phi(G) and G'' = p'/phi(G) + G G'²."""
    side = np.where(upper, -1.0, 1.0)  # the smaller tail is summed: it has the digits
    x = (w[:, None] - mixture.centre) * mixture.precision
    bell = x * x
    bell *= -0.5
    np.exp(bell, out=bell)
    bell *= mixture.precision
    density = bell @ mixture.weight
    bell *= mixture.precision
    bell *= x
    tilt = bell @ mixture.weight
    x *= side[:, None]
    deviate = side * ndtri(ndtr(x, out=x) @ mixture.weight)
    scale = np.exp(0.5 * deviate * deviate)  # phi(0)/phi(G); phi(0) was left out of the sums
    slope = scale * density
    return deviate, slope, deviate * slope * slope - scale * tilt
