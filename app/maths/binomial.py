"""How many of n people may fall into a tail: exact binomial limits, and what such limits can find.

scipy's `bdtr(k, n, p)` is P(X <= k), `bdtri` its inverse in p.
"""

import numpy as np
from scipy.special import bdtr, bdtri


def count_limits(people: int, share: float, error: float) -> tuple[int, int]:
    """The smallest and the largest count that are not too rare: P(X <= k) and P(X >= k) both above error / 2.

    A count outside comes by chance in at most `error` of the samples.
    """
    counts = np.arange(people + 1)
    at_most = bdtr(counts.astype(np.float64), people, share)
    at_least = 1.0 - np.concatenate([[0.0], at_most[:-1]])
    usual = np.flatnonzero((at_most > error / 2.0) & (at_least > error / 2.0))
    return int(usual[0]), int(usual[-1])


def shares_found(people: int, low: int, high: int, chance: float) -> tuple[float | None, float | None]:
    """Shares up to the first and from the second on leave low..high with this chance or more; None: no share does."""
    least = float(bdtri(low - 1.0, people, chance)) if low > 0 else None
    most = float(bdtri(float(high), people, 1.0 - chance)) if high < people else None
    return least, most
