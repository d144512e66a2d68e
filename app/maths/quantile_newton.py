"""Quantiles of a mixture of normal distributions, by Newton's method with its second-order term, for R people at once.

A sum over the nodes of a grid, P(W <= w) = Σ_j weight_j Phi((w - centre_j)/spread_j), is what both the predictive
distribution of a diameter and the diameter at a threshold come down to. The normal deviate G(w) of that probability is
nearly a straight line, so that two looks at it suffice: with Halley's step

    dw = n / (1 + n G''/2G'),   n = (ζ - G)/G',

a miss of δ deviates leaves one below 10δ³ (seen up to s2 = 3: 6δ³), and so a miss of at most 2e-5 proves the w that
follows it to 1e-13 deviates. What is not proved is for a slower search.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from app.maths.moments import Array
from app.maths.oriented import Mask
from app.maths.quadrature import Real

STEPS = 8  # 2 are taken where s2 is that of a model of the aorta
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
    for _ in range(STEPS):
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
