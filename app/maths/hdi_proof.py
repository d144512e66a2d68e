"""Whether an interval is the shortest of its mass: a proof that needs no search and no derivative.

The density p of T has one mode (see hdi.py). Let low..high have the right mass and the shortest interval be
low*..high*. If low* > low + η, then p(low + η) < p(low*) = p(high*) < p(high); if low* < low - η, then
p(low - η) > p(high). So

    p(low - η) <= p(high) <= p(low + η)        proves |low - low*| <= η,

and as both intervals have the same mass, high* is then off by no more than what the mass between low ± η takes up at
the density p(high). Where the density has a sharp peak close to low, only a small η proves the upper end.
"""

import numpy as np

from app.maths.density import log_density
from app.maths.moments import Array
from app.maths.oriented import Mask, Oriented
from app.maths.tails import tails

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
