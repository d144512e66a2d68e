"""The score turned to its positive side: all that its distribution depends on.

With a = |y - m1| e^{-m2}, b = s1 e^{-m2}, s = s2 and independent standard normal Z1, Z2

    T = ±NS = (a - b Z1) e^{-s Z2}.

In units of b the distribution depends on rho = a/b and s alone.
"""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.errors import UnverifiedResult
from app.maths.moments import Array, Moments
from app.maths.quadrature import Real, Rows

Mask = NDArray[np.bool_]
Shape = tuple[int, ...]
Values = float | Array  # one number for everyone, or an array that broadcasts against [N]

# With s2 = 10 the spread is known to a factor e^20 either way: such moments come from a defect, not from data.
LARGEST_S = 10.0
LARGEST_M2 = 200.0  # e^200 mm is no spread of anything either, and far from where doubles overflow
TINY = 1e-200  # stands in for 0 under a division or a logarithm
FEW = 4  # people who are worked faster one by one, with floats, than together


@dataclass(frozen=True, slots=True)
class Oriented:
    """Of N people: arrays [N]. Of a block: columns [R, 1]. Of one person: floats."""

    a: Real  # distance of the score's centre from 0
    b: Real  # standard deviation that f1 brings, at least TINY
    s: Real  # standard deviation of f2
    rho: Real  # a/b

    def __getitem__(self, rows: Rows | slice) -> "Oriented":
        return Oriented(self.a[rows], self.b[rows], self.s[rows], self.rho[rows])

    def columns(self, rows: Rows) -> "Oriented":
        return Oriented(self.a[rows, None], self.b[rows, None], self.s[rows, None], self.rho[rows, None])

    def of_one(self, row: int) -> "Oriented":
        return Oriented(self.a.item(row), self.b.item(row), self.s.item(row), self.rho.item(row))

    @property
    def is_point(self) -> Real:
        """Nothing is uncertain: T = a."""
        return (self.b == TINY) & (self.a * self.s == 0)


def oriented(a: Array, b: Array, s: Array) -> Oriented:
    b = np.maximum(b, TINY)
    return Oriented(a, b, s, a / b)


def orient(y: Values, moments: Moments, measurement_variance: Values, shape: Shape) -> tuple[Oriented, Array]:
    """(T, sign) with NS = sign·T, both flat: everything is spread over the shape first."""
    b, s = spreads(moments, measurement_variance, shape)
    centre = centres(y, moments, shape)
    return oriented(np.abs(centre), b, s), np.copysign(1.0, centre)


def centres(y: Values, moments: Moments, shape: Shape) -> Array:
    """(y - m1) e^{-m2}, flat."""
    centre = flat((y - moments.m1) * np.exp(-moments.m2), shape)
    ensure_trusted(bool(np.isfinite(centre.sum())))
    return centre


def spreads(moments: Moments, measurement_variance: Values, shape: Shape) -> tuple[Array, Array]:
    """b and s, flat."""
    b = flat(np.sqrt(moments.v1 + measurement_variance) * np.exp(-moments.m2), shape)
    s = flat(np.sqrt(moments.v2), shape)
    finite = np.isfinite(b.sum() + moments.m1.sum())
    ensure_trusted(bool(finite and (s <= LARGEST_S).all() and (np.abs(moments.m2) <= LARGEST_M2).all()))
    return b, s


def orient_one(
    y: float, m1: float, v1: float, m2: float, v2: float, measurement_variance: float
) -> tuple[Oriented, float]:
    """The same for one person."""
    v1 += measurement_variance
    ensure_trusted(math.isfinite(y + m1 + v1) and abs(m2) <= LARGEST_M2 and v1 >= 0.0 and 0.0 <= v2 <= LARGEST_S**2)
    scale = math.exp(-m2)
    centre = (y - m1) * scale
    a, b = abs(centre), max(math.sqrt(v1) * scale, TINY)
    return Oriented(a, b, math.sqrt(v2), a / b), math.copysign(1.0, centre)


def ensure_trusted(condition: bool) -> None:
    if not condition:
        raise UnverifiedResult(
            f"Diameters and moments must be finite, v1 from 0 on, v2 in 0..{LARGEST_S**2:g}, m2 within ±{LARGEST_M2:g}."
        )


def flat(values: Array, shape: Shape) -> Array:
    return values if values.shape == shape and len(shape) == 1 else np.broadcast_to(values, shape).reshape(-1)


def limits_allowed() -> AbstractContextManager[object]:
    """s1 -> 0 and s2 -> 0 pass through infinities that are meant; what must be finite is checked."""
    return np.errstate(all="ignore")
