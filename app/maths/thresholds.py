"""The diameter at which a score is reached: quantiles of f1 + t e^{f2}.

P(f1 + t e^{f2} < q) is P(NS > t) at the diameter q. In units of e^{m2} about m1 the variable is b Z1 + t e^{s Z2},
close to w(ζ) = b ζ cos φ + t e^{±s ζ sin φ} with one standard normal ζ and tan φ = s|t|/b, exactly so with t, s1 or s2 at 0.
The search runs in ζ, where the normal deviate of the probability is nearly ζ itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from app.maths.moments import Array, Moments
from app.maths.oriented import TINY, Values, flat, limits_allowed, oriented
from app.maths.roots import increasing_root
from app.maths.tails import FLAT, Tails, normal_deviate, tails

NARROW = 1e-9  # of |t|: w is then exact to 1e-9 of the spread, and t has no digits to spare


def threshold_diameter(p: Values, t: Values, moments: Moments) -> Array:
    """The quantile p of f1 + t e^{f2} in mm; p and t broadcast against the moments [N]."""
    shape = np.broadcast(p, t, moments.m1).shape
    zeta = flat(np.asarray(ndtri(p)), shape)
    if not np.isfinite(zeta).all():
        raise ValueError("A quantile's probability lies between 0 and 1.")
    scale = np.exp(moments.m2)
    with limits_allowed():
        b, s = flat(np.sqrt(moments.v1) / scale, shape), flat(np.sqrt(moments.v2), shape)
        w = _Reading(flat(np.asarray(t, dtype=np.float64), shape), b, s).quantile(zeta)
    return np.asarray(moments.m1 + scale * w.reshape(shape))


@dataclass(frozen=True, slots=True)
class _Reading:
    """b Z1 + t e^{s Z2} of N people."""

    t: Array  # [N]
    b: Array  # [N]
    s: Array  # [N]

    def quantile(self, zeta: Array) -> Array:
        spread = np.hypot(self.b, self.s * self.t)
        wide = np.flatnonzero(spread > NARROW * np.abs(self.t))

        def excess(guess: Array, rows: NDArray[np.intp]) -> Array:
            chosen = wide[rows]
            return self.deviate(self.near(guess, chosen), chosen) - zeta[chosen]

        solved = zeta.copy()
        solved[wide] = increasing_root(excess, zeta[wide], np.full(wide.size, -FLAT), np.full(wide.size, FLAT))
        return self.near(solved, np.arange(zeta.size))

    def near(self, zeta: Array, rows: NDArray[np.intp]) -> Array:
        """w(ζ), which rises with ζ whatever the sign of t."""
        t, b, s = self.t[rows], self.b[rows], self.s[rows]
        spread = np.maximum(np.hypot(b, s * t), TINY)
        return np.asarray(b * (b / spread) * zeta + t * np.exp(s * (s * t / spread) * zeta))

    def deviate(self, w: Array, rows: NDArray[np.intp]) -> Array:
        """The normal deviate of P(b Z1 + t e^{s Z2} <= w): the score of a diameter w, oriented, against t."""
        upright = w >= 0
        tail = tails(np.where(upright, self.t[rows], -self.t[rows]), oriented(np.abs(w), self.b[rows], self.s[rows]))
        return normal_deviate(
            Tails(np.where(upright, tail.above, tail.below), np.where(upright, tail.below, tail.above))
        )
