"""The diameter at which a score is reached: quantiles of f1 + t e^{f2}.

P(f1 + t e^{f2} < q) is P(NS > t) at the diameter q. In units of e^{m2} about m1 the variable is b Z1 + t e^{s Z2},
close to w(ζ) = b ζ cos φ + t e^{±s ζ sin φ} with one standard normal ζ and tan φ = s|t|/b; exactly so if t, s1 or s2
is 0.
The search runs in ζ, where the normal deviate of the probability is nearly ζ itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from app.errors import NumbersNotTrusted
from app.maths.moments import Array, Moments
from app.maths.oriented import TINY, Values, flat, limits_allowed, oriented, spreads
from app.maths.roots import increasing_root
from app.maths.tails import FLAT, Tails, normal_deviate, tails

FARTHEST = 1e15  # a bracket's end, where b is 0
NARROW = 1e-9  # of |t|: w is then exact to 1e-9 of the spread, and t has no digits to spare


def threshold_diameter(p: Values, t: Values, moments: Moments) -> Array:
    """The quantile p of f1 + t e^{f2} in mm; p and t broadcast against the moments [N]."""
    shape = np.broadcast(p, t, moments.m1).shape
    zeta = flat(np.asarray(ndtri(p)), shape)
    if not np.isfinite(zeta).all():
        raise ValueError("A quantile's probability lies between 0 and 1.")
    with limits_allowed():
        reading = _Reading(flat(np.asarray(t, dtype=np.float64), shape), *spreads(moments, 0.0, shape))
        w = reading.quantile(zeta).reshape(shape)
    return np.asarray(moments.m1 + np.exp(moments.m2) * w)


@dataclass(frozen=True, slots=True)
class _Reading:
    """b Z1 + t e^{s Z2} of N people."""

    t: Array  # [N]
    b: Array  # [N]
    s: Array  # [N]

    def quantile(self, zeta: Array) -> Array:
        wide = np.flatnonzero(self.spread > NARROW * np.abs(self.t))
        low, high = self.bracket(wide)

        def excess(guess: Array, rows: NDArray[np.intp]) -> Array:
            chosen = wide[rows]
            return np.asarray(self.deviate(self.near(guess, chosen), chosen) - zeta[chosen])

        solved = zeta.copy()
        solved[wide] = increasing_root(excess, zeta[wide], low, high)
        if not np.all((solved[wide] > low) & (solved[wide] < high)):
            raise NumbersNotTrusted("A threshold's diameter lies beyond all that the moments allow.")
        return self.near(solved, np.arange(zeta.size))

    @property
    def spread(self) -> Array:
        return np.maximum(np.hypot(self.b, self.s * self.t), TINY)

    def near(self, zeta: Array, rows: NDArray[np.intp]) -> Array:
        """w(ζ), which rises with ζ whatever the sign of t."""
        t, b, s, spread = self.t[rows], self.b[rows], self.s[rows], self.spread[rows]
        return np.asarray(b * (b / spread) * zeta + t * np.exp(s * (s * t / spread) * zeta))

    def bracket(self, rows: NDArray[np.intp]) -> tuple[Array, Array]:
        """On the side where the exponential vanishes only b ζ cos φ is left to reach FLAT deviations of Z1."""
        outer = np.minimum(FLAT * self.spread[rows] / np.maximum(self.b[rows], TINY), FARTHEST)
        return np.where(self.t[rows] > 0, -outer, -FLAT), np.where(self.t[rows] < 0, outer, FLAT)

    def deviate(self, w: Array, rows: NDArray[np.intp]) -> Array:
        """The normal deviate of P(b Z1 + t e^{s Z2} <= w): the score of a diameter w, oriented, against t."""
        upright = w >= 0
        tail = tails(np.where(upright, self.t[rows], -self.t[rows]), oriented(np.abs(w), self.b[rows], self.s[rows]))
        return normal_deviate(
            Tails(np.where(upright, tail.above, tail.below), np.where(upright, tail.below, tail.above))
        )
