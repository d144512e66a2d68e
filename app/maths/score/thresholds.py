"""The diameter at which a score is reached: quantiles of f1 + t e^{f2}.

P(f1 + t e^{f2} < q) is P(NS > t) at the diameter q. In units of e^{m2} about m1 the variable is b Z1 + t e^{s Z2},
close to w(ζ) = b ζ cos φ + t e^{±s ζ sin φ} with one standard normal ζ and tan φ = s|t|/b; exactly so if t, s1 or s2
is 0.
Newton's method starts from w(ζ). Where Z2 is no variable to sum over, or the quantile lies far out, a slower search
runs in ζ, where the normal deviate of the probability is nearly ζ itself.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from app.errors import UnverifiedResult
from app.maths.moments import Array, Moments
from app.maths.score.canonical_form import TINY, TURN, Mask, Values, flat, ignore_float_warnings, oriented, spreads
from app.maths.score.distribution import FLAT, normal_deviate, tails
from app.maths.score.quadrature import Rows, grid, grouped, nodes_for
from app.maths.score.roots import Mixture, increasing_root, newton_quantiles

FARTHEST = 1e15  # a bracket's end, where b is 0
MIDDLE = 2.5  # deviates within which 1e-12 of a probability is 1e-10 of a deviate
STEEPEST = 24.0  # along Z2 with 400 nodes; at the people of the shipped models it is 1.5 to 3.3
NARROW = 1e-9  # of |t|: w is then exact to 1e-9 of the spread, and t has no digits to spare


def threshold_diameter(p: Values, t: Values, moments: Moments) -> Array:
    """The quantile p of f1 + t e^{f2} in mm; p and t broadcast against the moments [N]."""
    shape = np.broadcast(p, t, moments.m1).shape
    zeta = flat(np.asarray(ndtri(p)), shape)
    if not np.isfinite(zeta).all():
        raise ValueError("A quantile's probability lies between 0 and 1.")
    with ignore_float_warnings():
        w = quantiles(zeta, flat(np.asarray(t, dtype=np.float64), shape), *spreads(moments, 0.0, shape)).reshape(shape)
    return np.asarray(moments.m1 + np.exp(moments.m2) * w)


def quantiles(zeta: Array, t: Array, b: Array, s: Array) -> Array:
    """The quantiles [N] of b Z1 + t e^{s Z2} whose probabilities have the normal deviates ζ [N]."""
    return _Diameter.of(t, b, s).quantile(zeta)


@dataclass(frozen=True, slots=True)
class _Diameter:
    """b Z1 + t e^{s Z2} of N people, and w(ζ) = linear·ζ + t e^{rate·ζ}. Every array is [N]."""

    t: Array
    b: Array
    s: Array
    linear: Array  # b cos φ
    rate: Array  # ±s sin φ

    @classmethod
    def of(cls, t: Array, b: Array, s: Array) -> "_Diameter":
        spread = np.maximum(np.hypot(b, s * t), TINY)
        return cls(t, b, s, b * (b / spread), s * (s * t / spread))

    def __getitem__(self, rows: Rows) -> "_Diameter":
        return _Diameter(self.t[rows], self.b[rows], self.s[rows], self.linear[rows], self.rate[rows])

    def quantile(self, zeta: Array) -> Array:
        w, found = self.newton(zeta)
        if not found.all():
            rest = np.flatnonzero(~found)
            w[rest] = self[rest].search(zeta[rest])
        return w

    def newton(self, zeta: Array) -> tuple[Array, Mask]:
        """w [N] and which are proved. Given Z2 = z the variable is normal, with centre t e^{sz} and spread b."""
        w, found = self.near(zeta), np.zeros(zeta.size, dtype=bool)
        # One grid for all quantiles of a person: that of the farthest.
        steepness = self.steepness(np.maximum(-self.near(-MIDDLE), self.near(MIDDLE)))
        suited = (steepness <= STEEPEST) & (np.abs(zeta) < MIDDLE)
        for group in grouped(nodes_for(np.minimum(steepness, STEEPEST)), 1 * suited):
            if group.kind:
                rows, nodes = group.rows, grid(group.size)
                centre = self.t[rows, None] * np.exp(self.s[rows, None] * nodes.z)
                mixture = Mixture(centre, 1.0 / self.b[rows, None], nodes.weight)
                w[rows], found[rows] = newton_quantiles(zeta[rows], w[rows], mixture)
        return w, found & (self.steepness(np.abs(w)) <= steepness)  # else the grid was too coarse for this w

    def steepness(self, reach: Array) -> Array:
        """Of the normal deviate in z, where it still turns at the quantile ±reach."""
        return np.asarray(self.s * (reach / np.maximum(self.b, TINY) + TURN))

    def search(self, zeta: Array) -> Array:
        wide = np.flatnonzero(np.hypot(self.b, self.s * self.t) > NARROW * np.abs(self.t))
        solved = zeta.copy()
        solved[wide] = self[wide].solve(zeta[wide])
        return self.near(solved)

    def solve(self, zeta: Array) -> Array:
        """The ζ whose w has the probability of the normal deviates given."""

        def excess(guess: Array, rows: Rows) -> Array:
            here = self[rows]
            return here.deviate(here.near(guess)) - zeta[rows]

        low, high = self.bracket()
        solved = increasing_root(excess, zeta, low, high)
        if not np.all((solved > low) & (solved < high)):
            raise UnverifiedResult("A threshold's diameter lies beyond all that the moments allow.")
        return solved

    def near(self, zeta: Values) -> Array:
        """w(ζ), which rises with ζ whatever the sign of t."""
        return np.asarray(self.linear * zeta + self.t * np.exp(self.rate * zeta))

    def bracket(self) -> tuple[Array, Array]:
        """On the side where the exponential vanishes only the linear term is left to reach FLAT deviations of Z1."""
        outer = np.minimum(FLAT * np.maximum(self.b, TINY) / np.maximum(self.linear, TINY), FARTHEST)
        return np.where(self.t > 0, -outer, -FLAT), np.where(self.t < 0, outer, FLAT)

    def deviate(self, w: Array) -> Array:
        """The normal deviate of P(b Z1 + t e^{s Z2} <= w), which is P(NS > t) at a score of w."""
        sign = np.where(w >= 0, 1.0, -1.0)
        return np.asarray(-sign * normal_deviate(tails(sign * self.t, oriented(np.abs(w), self.b, self.s))))
