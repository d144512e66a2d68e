"""The highest-density interval of the oriented score T: the shortest interval of a given mass.

The density of T has one mode, whatever a, b and s. On t > 0 it is, as a function of log t, the convolution of
phi((e^w - a)/b), which rises and then falls, with a normal density, and such a convolution adds no change of direction;
on t < 0 the same argument shows it rising throughout; at 0 its slope is not negative. Therefore the shortest interval
is unique, and the right mass together with equal density at both ends identifies it.

Newton's method finds it and verifies it. What it does not verify goes to the nested search of hdi_safe.py, which proves
its own answer or raises.
"""

from functools import lru_cache

import numpy as np

from app.maths.hdi_newton import refine, refine_one
from app.maths.hdi_safe import safe_ends
from app.maths.hdi_start import LARGEST_TABLED_S, StartingTable, approximate_ends
from app.maths.moments import Array
from app.maths.oriented import Oriented, limits_allowed, oriented

TABLED_MASS = 0.95
TABLE_ROWS = 1024  # people whose powers of θ and s stay in the cache
# So narrow a T is normal to 1e-9 of its width, and the digits of a leave no room to verify more.
NARROW = 1e-9


def shortest_ends(score: Oriented, mass: float) -> Array:
    """[2, N]"""
    if mass != TABLED_MASS:
        return settled(approximate_ends(score, mass), score, mass)
    ends, table = np.empty((2, score.a.size)), starting_table()
    for first in range(0, score.a.size, TABLE_ROWS):
        rows = slice(first, first + TABLE_ROWS)
        ends[:, rows] = table.ends(score[rows])
    beyond = np.flatnonzero(score.s > LARGEST_TABLED_S)
    ends[:, beyond] = approximate_ends(score[beyond], mass)
    return settled(ends, score, mass)


def shortest_of_one(score: Oriented, mass: float) -> tuple[float, float]:
    """The same for one person."""
    tabled = mass == TABLED_MASS and score.s <= LARGEST_TABLED_S
    start = starting_table().ends_of_one(score) if tabled else approximate_ends(score, mass)
    try:
        found = refine_one(start, score, mass)
    except ZeroDivisionError:  # a density that vanished: for arrays a NaN, which is not verified either
        found = None
    if found is None:
        low, high = safe_shortest_ends(oriented(*(np.array([value]) for value in (score.a, score.b, score.s))), mass)
        found = low.item(), high.item()
    return found


def settled(ends: Array, score: Oriented, mass: float) -> Array:
    """The shortest intervals [2, N], from ends near them."""
    ends, verified = refine(ends, score, mass)
    if not verified.all():
        rest = np.flatnonzero(~verified)
        ends[:, rest] = safe_shortest_ends(score[rest], mass)
    return ends


def safe_shortest_ends(score: Oriented, mass: float) -> Array:
    ends = approximate_ends(score, mass)
    wide = np.flatnonzero(np.hypot(score.b, score.s * score.a) > NARROW * score.a)
    if wide.size:
        ends[:, wide] = safe_ends(score[wide], mass)
    return ends


@lru_cache(maxsize=1)
def starting_table() -> StartingTable:
    """Made once in a process, in about 0.02 s."""
    with limits_allowed():
        return StartingTable.fitted(lambda score: settled(approximate_ends(score, TABLED_MASS), score, TABLED_MASS))
