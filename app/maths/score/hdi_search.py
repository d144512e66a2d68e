"""The shortest interval by two nested searches that cannot miss it: slow, and free of any starting point.

Let upper(low) leave the mass between low and itself. The density p of T has one mode (see hdi.py), therefore
log p(low) - log p(upper(low)) changes its sign once as low grows, from minus to plus, and it does so at the shortest
interval. Both searches run in τ, with t = η sinh τ, which resolves the peak that a large s2 makes near 0 as well as
the long tail.

Whether an interval is the shortest of its mass: a proof that needs no search and no derivative.

The density p of T has one mode (see hdi.py). Let low..high have the right mass and the shortest interval be
low*..high*. If low* > low + η, then p(low + η) < p(low*) = p(high*) < p(high); if low* < low - η, then
p(low - η) > p(high). So

    p(low - η) <= p(high) <= p(low + η)        proves |low - low*| <= η,

and as both intervals have the same mass, high* is then off by no more than what the mass between low ± η takes up at
the density p(high). Where the density has a sharp peak close to low, only a small η proves the upper end.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from app.errors import UnverifiedResult
from app.maths.moments import Array
from app.maths.score.canonical_form import Mask, Oriented
from app.maths.score.distribution import FLAT, Tails, log_density, normal_deviate, tails
from app.maths.score.roots import increasing_root

Rows = NDArray[np.intp]

EXTREME = 9.5  # standard deviations of Z1 and Z2; both stay within them with probability 1 - 4e-21
PROOF = 1e-7  # of the width


def safe_ends(score: Oriented, mass: float) -> Array:
    """The shortest intervals [2, N], each proven to 1e-7 of its width."""
    search = _Search(score, mass)
    everyone = np.arange(score.a.size)
    least, _ = search.range(everyone)
    # Above this lower end there is less than the mass.
    highest = search.quantile(np.full_like(least, -ndtri(mass)), everyone)
    tau = increasing_root(search.imbalance, 0.5 * (least + highest), least, highest)
    ends = np.stack((search.t(tau, everyone), search.t(search.upper(tau, everyone), everyone)))
    shown = proven(ends, score, mass, PROOF)
    if not shown.all():
        raise UnverifiedResult(f"The interval of {np.count_nonzero(~shown)} of {shown.size} scores is not proven.")
    return ends


@dataclass(frozen=True, slots=True)
class _Search:
    score: Oriented  # [N], none of them certain
    mass: float

    def scale(self, rows: Rows) -> Array:
        """η: the density's finest detail is not smaller."""
        score = self.score[rows]
        return np.asarray(np.hypot(score.a, score.b) * np.exp(-score.s * (score.s + 4.0)))

    def t(self, tau: Array, rows: Rows) -> Array:
        return np.asarray(self.scale(rows) * np.sinh(tau))

    def range(self, rows: Rows) -> tuple[Array, Array]:
        """τ of the least and the largest T."""
        score, scale = self.score[rows], self.scale(rows)
        reach, noise = np.exp(EXTREME * score.s), EXTREME * score.b
        return np.arcsinh(-noise * reach / scale), np.arcsinh((score.a + noise) * reach / scale)

    def tails(self, tau: Array, rows: Rows) -> Tails:
        return tails(self.t(tau, rows), self.score[rows])

    def quantile(self, deviate: Array, rows: Rows) -> Array:
        """τ where P(T <= t) is the probability below the normal deviate."""
        low, high = self.range(rows)

        def excess(tau: Array, inner: Rows) -> Array:
            return normal_deviate(self.tails(tau, rows[inner])) - deviate[inner]

        return increasing_root(excess, 0.5 * (low + high), low, high)

    def upper(self, tau: Array, rows: Rows) -> Array:
        above = self.tails(tau, rows).above - self.mass
        return self.quantile(np.where(above > 0, -ndtri(np.maximum(above, 0.0)), FLAT), rows)

    def imbalance(self, tau: Array, rows: Rows) -> Array:
        score = self.score[rows]
        low, high = self.t(tau, rows), self.t(self.upper(tau, rows), rows)
        return log_density(low, score) - log_density(high, score)


ROUNDING = 64 * float(np.finfo(float).eps)  # of |t|: what the ends may have lost on their way
AT_A_SHARP_PEAK = 1e-2  # of |low|


def proven(ends: Array, score: Oriented, mass: float, within: float) -> Mask:
    """Which of the intervals [2, N] are the shortest, to the given share of their width."""
    low, high = ends
    near = within * (high - low) + ROUNDING * np.abs(ends).max(axis=0)
    p_high = log_density(high, score)
    affordable = near * np.exp(p_high)
    covered = tails(low, score).above - tails(high, score).above

    def begins_within(eta: Array) -> Mask:
        before, after = low - eta, low + eta
        between = tails(before, score).above - tails(after, score).above
        rises = (log_density(before, score) <= p_high) & (p_high <= log_density(after, score))
        return np.asarray(rises & (between <= affordable))

    shown = begins_within(0.25 * near) | begins_within(np.minimum(0.25 * near, AT_A_SHARP_PEAK * np.abs(low)))
    return np.asarray(shown & (np.abs(covered - mass) <= affordable))
