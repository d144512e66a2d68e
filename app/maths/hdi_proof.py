"""Whether an interval is the shortest of its mass: a proof that needs no search and no derivative.

The density p of T has one mode (see hdi.py). Let the interval low..high have the right mass and the shortest one begin
at low*. If low* > low + δ, then p(low + δ) < p(low*) = p(high*) < p(high); if low* < low - δ, then
p(low - δ) > p(high). So

    p(low - δ) <= p(high) <= p(low + δ)        proves |low - low*| <= δ,

and in the same way p(high + δ) <= p(low) <= p(high - δ) proves the upper end. A mass that is off by less than δ p(high)
costs another δ at most.
"""

import numpy as np

from app.maths.density import log_density
from app.maths.moments import Array
from app.maths.oriented import Mask, Oriented
from app.maths.tails import tails

ROUNDING = 64 * float(np.finfo(float).eps)  # of |t|: what the ends may have lost on their way


def proven(ends: Array, score: Oriented, mass: float, within: float) -> Mask:
    """Which of the intervals [2, N] are the shortest, to the given share of their width."""
    low, high = ends
    near = within * (high - low) + ROUNDING * np.abs(ends).max(axis=0)
    covered = tails(low, score).above - tails(high, score).above
    p_low, p_high = log_density(low, score), log_density(high, score)
    shown: Mask = np.abs(covered - mass) <= near * np.exp(p_high)
    shown &= (log_density(low - near, score) <= p_high) & (p_high <= log_density(low + near, score))
    shown &= (log_density(high + near, score) <= p_low) & (p_low <= log_density(high - near, score))
    return shown
