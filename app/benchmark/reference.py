"""The committed table of exact intervals and exceedances, made with mpmath: it shares no code with app/maths.

In units of s1 e^{-m2} the score is (rho - Z1) e^{-s2 Z2}. A case's interval is the root of {coverage = mass, equal
density} found by Newton's method in 20 digits, with every integral by mpmath's adaptive quadrature over Z2. Our own
interval is only the starting point: the last correction, stored in the table, is that of 20 digits.
"""

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from app.maths.moments import Moments
from app.maths.score import normalcy

DIGITS = 20
CONVERGED = 1e-10  # a correction, in widths; the next would be its square
NEWTON_STEPS = 30

RHO = (0, 0.01, 0.1, 0.3, 1, 2, 3, 5, 7, 9, 9.4, 9.6, 12, 20, 50, 100, 300, 1e3, 3e3, 1e4)
S2 = (1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.08, 0.2, 0.35, 0.5, 0.6, 0.8, 1, 1.5, 2, 3)
FEWER_RHO = (0, 0.3, 2, 8, 30, 1e3, 1e4)
FEWER_S2 = (1e-6, 0.01, 0.1, 0.4, 1, 3)
OTHER_MASSES = (0.01, 0.5, 0.8, 0.9, 0.99, 0.9999)
# Where exceedance is asked for: fixed scores, and steps of a width beyond the ends and inside.
FIXED_THRESHOLDS = (2.0, -2.0)
RELATIVE_THRESHOLDS = (-0.5, 0.25, 0.75, 1.5)


@dataclass(frozen=True, slots=True)
class ReferenceQuery:
    rho: float
    s2: float
    mass: float
    sign: int  # of y - m1

    def moments(self) -> tuple[float, Moments]:
        """(y, moments) with s1 = 1, m2 = 0."""
        return self.sign * self.rho, Moments(*(np.array([value]) for value in (0.0, 1.0, 0.0, self.s2**2)))


@dataclass(frozen=True, slots=True)
class ReferenceCase:
    rho: float
    s2: float
    mass: float
    sign: int
    low: float
    high: float
    last_correction: float  # in widths
    threshold: float
    below: float  # P(NS <= threshold)
    above: float

    @property
    def query(self) -> ReferenceQuery:
        return ReferenceQuery(self.rho, self.s2, self.mass, self.sign)


def reference_queries() -> list[ReferenceQuery]:
    grid = [*product(RHO, S2, (0.95,)), *product(FEWER_RHO, FEWER_S2, OTHER_MASSES)]
    return [ReferenceQuery(float(rho), s2, mass, (-1) ** index) for index, (rho, s2, mass) in enumerate(grid)]


def make_reference(path: Path, report: Callable[[str, float], None] = lambda what, share: None) -> int:
    """Write the table again (a quarter of an hour), and return how many cases it has."""
    asked = reference_queries()
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(field.name for field in fields(ReferenceCase))
        for index, query in enumerate(asked):
            table.writerow(astuple(solve(query, index)))
            report(f"{index + 1} of {len(asked)} cases", (index + 1) / len(asked))
    return len(asked)


def read_reference(path: Path) -> Iterator[ReferenceCase]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            numbers = {name: float(value) for name, value in row.items() if name != "sign"}
            yield ReferenceCase(sign=int(row["sign"]), **numbers)


def solve(query: ReferenceQuery, index: int) -> ReferenceCase:
    """The interval in mpmath, and the exceedance of a threshold that goes round with the index."""
    y, moments = query.moments()
    ours = normalcy.hdi(y, moments, query.mass)
    oriented = Integrals(query.rho, query.s2)
    start = sorted((query.sign * float(ours.low[0]), query.sign * float(ours.high[0])))
    low, high, correction = oriented.shortest(start[0], start[1], query.mass)
    low, high = sorted((query.sign * low, query.sign * high))
    threshold = _threshold(index, float(low), float(high))
    tails = [float(tail) for tail in oriented.tails(query.sign * threshold)]
    below, above = tails[:: query.sign]
    rho, s2, mass, sign = astuple(query)
    return ReferenceCase(rho, s2, mass, sign, float(low), float(high), float(correction), threshold, below, above)


def _threshold(index: int, low: float, high: float) -> float:
    choice = index % (len(FIXED_THRESHOLDS) + len(RELATIVE_THRESHOLDS))
    if choice < len(FIXED_THRESHOLDS):
        return FIXED_THRESHOLDS[choice]
    return low + RELATIVE_THRESHOLDS[choice - len(FIXED_THRESHOLDS)] * (high - low)


class Integrals:
    """The distribution of T = (rho - Z1) e^{-s Z2} by adaptive quadrature over Z2 in DIGITS digits."""

    def __init__(self, rho: float, s: float) -> None:
        import mpmath

        self.mp = mpmath.mp.clone()
        self.mp.dps = DIGITS
        self.rho, self.s = self.mp.mpf(rho), self.mp.mpf(s)
        # The factor e^{2sz} of the density's slope moves the normal weight by 2s.
        self.span = (-10, -7, -4, -2, 0, 2, 4, 7, 10, 10 + 2 * self.s)

    def shortest(self, low: float, high: float, mass: float) -> tuple[Any, Any, Any]:
        """(low, high, last correction in widths)."""
        lo, hi = self.mp.mpf(low), self.mp.mpf(high)
        for _ in range(NEWTON_STEPS):
            p_lo, p_hi = self.density(lo), self.density(hi)
            g_lo, g_hi = self.density_slope(lo) / p_lo, self.density_slope(hi) / p_hi
            missing = self.mp.mpf(mass) - self.between(lo, hi)
            uneven = self.mp.log(p_hi / p_lo)
            common = p_hi * g_lo - p_lo * g_hi
            step_lo, step_hi = (g_hi * missing + p_hi * uneven) / common, (g_lo * missing + p_lo * uneven) / common
            lo, hi = lo + step_lo, hi + step_hi
            correction = max(abs(step_lo), abs(step_hi)) / (hi - lo)
            if correction < CONVERGED:
                return lo, hi, correction
        raise ArithmeticError(f"No convergence at rho = {self.rho}, s2 = {self.s}.")

    def between(self, low: Any, high: Any) -> Any:
        def mass(z: Any) -> Any:
            return self.normal(self.x(high, z)) - self.normal(self.x(low, z))

        return self.expect(mass, low, high)

    def tails(self, t: float) -> tuple[Any, Any]:
        """P(T <= t), P(T > t)."""
        at, far = self.mp.mpf(t), range(-40, 41, 5)  # far, because a tail of 1e-100 has its mass there
        below = self.expect(lambda z: self.normal(self.x(at, z)), at, more=far)
        return below, self.expect(lambda z: self.normal(-self.x(at, z)), at, more=far)

    def density(self, t: Any) -> Any:
        return self.expect(lambda z: self.mp.exp(self.s * z) * self.mp.npdf(self.x(t, z)), t)

    def density_slope(self, t: Any) -> Any:
        def slope(z: Any) -> Any:
            x = self.x(t, z)
            return -self.mp.exp(2 * self.s * z) * x * self.mp.npdf(x)

        return self.expect(slope, t)

    def x(self, t: Any, z: Any) -> Any:
        return t * self.mp.exp(self.s * z) - self.rho

    def normal(self, x: Any) -> Any:
        return self.mp.erfc(-x / self.mp.sqrt(2)) / 2

    def expect(self, function: Callable[[Any], Any], *turning: Any, more: Iterable[int] = ()) -> Any:
        points = sorted({*self.span, *more, *(z for t in turning for z in self.turning_points(t))})
        return self.mp.quad(lambda z: function(z) * self.mp.npdf(z), points, method="gauss-legendre")

    def turning_points(self, t: Any) -> Iterator[Any]:
        """Where x(z) passes the values between which Phi and phi turn, and where t e^{sz} is of their order."""
        levels = [*(self.rho + q for q in (-9, -4, -1, 1, 4, 9)), *(self.mp.mpf(10) ** q for q in (-2, 0))]
        for level in levels:
            if t != 0 and level > 0:
                z = self.mp.log(level / abs(t)) / self.s
                if self.span[0] < z < self.span[-1]:
                    yield z
