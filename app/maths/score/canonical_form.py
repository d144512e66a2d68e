"""The score turned to its positive side: all that its distribution depends on.

With a = |y - m1| e^{-m2}, b = s1 e^{-m2}, s = s2 and independent standard normal Z1, Z2

    T = ±NS = (a - b Z1) e^{-s Z2}.

In units of b the distribution depends on rho = a/b and s alone.

Given Z2 = z the event T <= t is Z1 >= (a - t e^{sz})/b; given Z1 = z it is Z2 >= log((a - bz)/t)/s. Either way it is
that of a normal deviate x(z),

    P(T <= t) = E[Phi(x(Z))],   x2(z) = (t e^{sz} - a)/b,   x1(z) = (log(t/a) - log(1 - z/rho))/s,

and we integrate over the variable along which x is less steep. With s1 = 0 the second form is the lognormal
distribution, with s2 = 0 the first is the normal one: neither limit needs a case of its own.
"""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.errors import UnverifiedResult
from app.maths.moments import Array, Moments, Real
from app.maths.score.quadrature import Rows

Mask = NDArray[np.bool_]
Shape = tuple[int, ...]
Values = float | Array  # one number for everyone, or an array that broadcasts against [N]

# With s2 = 10 the spread is known to a factor e^20 either way: such moments come from a defect, not from data.
LARGEST_S = 10.0
LARGEST_M2 = 200.0  # e^200 mm is no spread of anything either, and far from where doubles overflow
TINY = 1e-200  # stands in for 0 under a division or a logarithm
SCALAR_MAX_PEOPLE = 4  # people who are worked faster one by one, with floats, than together


@dataclass(frozen=True, slots=True)
class Oriented:
    """Of N people: arrays [N]. Of a block: columns [R, 1]. Of one person: floats."""

    a: Real  # distance of the score's centre from 0
    b: Real  # standard deviation that f1 brings, at least TINY
    s: Real  # standard deviation of f2
    rho: Real  # a/b

    def __getitem__(self, rows: Rows | slice) -> "Oriented":
        return Oriented(self.a[rows], self.b[rows], self.s[rows], self.rho[rows])

    def columns(self, rows: Rows | slice) -> "Oriented":
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
    require_valid(bool(np.isfinite(centre.sum())))
    return centre


def spreads(moments: Moments, measurement_variance: Values, shape: Shape) -> tuple[Array, Array]:
    """b and s, flat."""
    b = flat(np.sqrt(moments.v1 + measurement_variance) * np.exp(-moments.m2), shape)
    s = flat(np.sqrt(moments.v2), shape)
    finite = np.isfinite(b.sum() + moments.m1.sum())
    require_valid(bool(finite and (s <= LARGEST_S).all() and (np.abs(moments.m2) <= LARGEST_M2).all()))
    return b, s


def orient_one(
    y: float, m1: float, v1: float, m2: float, v2: float, measurement_variance: float
) -> tuple[Oriented, float]:
    """The same for one person."""
    v1 += measurement_variance
    require_valid(math.isfinite(y + m1 + v1) and abs(m2) <= LARGEST_M2 and v1 >= 0.0 and 0.0 <= v2 <= LARGEST_S**2)
    scale = math.exp(-m2)
    centre = (y - m1) * scale
    a, b = abs(centre), max(math.sqrt(v1) * scale, TINY)
    return Oriented(a, b, math.sqrt(v2), a / b), math.copysign(1.0, centre)


def require_valid(condition: bool) -> None:
    if not condition:
        raise UnverifiedResult(
            f"Diameters and moments must be finite, v1 from 0 on, v2 in 0..{LARGEST_S**2:g}, m2 within ±{LARGEST_M2:g}."
        )


def flat(values: Array, shape: Shape) -> Array:
    return values if values.shape == shape and len(shape) == 1 else np.broadcast_to(values, shape).reshape(-1)


def ignore_float_warnings() -> AbstractContextManager[object]:
    """s1 -> 0 and s2 -> 0 pass through infinities that are meant; what must be finite is checked."""
    return np.errstate(all="ignore")


# Along Z1 the integrand is singular at Z1 = rho; from here on that point weighs less than 1e-20.
FAR_FROM_ZERO = 9.5
# Phi(x2) still turns up to x2 = 4, where its slope is s(rho + 4); with 3 the errors grow tenfold at rho = 0, s2 > 1.
TURN = 4.0
# Up to rho = 1000, or from s2 = 1/1000 on, exp and log serve as well as expm1 and log1p, which are slower:
# x loses 2e-13 at most.
FEW_DIGITS_LOST = 1e3


def given_f1(score: Oriented) -> Real:
    """Where x1 is less steep than x2 on t > 0, and Z1 cannot turn the sign of T."""
    k = score.s * score.rho
    return (score.rho > FAR_FROM_ZERO) & (k * (k + TURN * score.s) > 1.0)


def steepness(score: Oriented, on_f1: Real, positive: Real = True) -> Real:
    """The slope of x where Phi(x) still turns. On t <= 0, x2 only levels off at -rho, and rho plays no part."""
    k = score.s * score.rho
    return on_f1 / (k + TINY) + (1 - on_f1) * (positive * k + TURN * score.s)


def x_given_f2(t: Real, score: Oriented, z: Array) -> Array:
    """x2 as (t - a)/b + (e^{sz} - 1) t/b, which keeps its digits where b and s are small beside a."""
    x = growth(score, z) * (t / score.b)
    x += (t - score.a) / score.b
    return np.asarray(x)


def x_given_f1(t: Real, score: Oriented, z: Array) -> Array:
    x = shift(score, z)
    if isinstance(t, float):
        x += log_ratio(t, score) / score.s
        return x
    return np.asarray(x + log_ratio(t, score) / score.s)


def growth(score: Oriented, z: Array) -> Array:
    """e^{sz} - 1."""
    y: Array = score.s * z
    if not everywhere(score.rho <= FEW_DIGITS_LOST):
        return np.asarray(np.expm1(y, out=y))
    np.exp(y, out=y)
    y -= 1.0
    return y


def shift(score: Oriented, z: Array) -> Array:
    """-log(1 - z/rho)/s. A node that would turn the sign of T has no weight and is held back."""
    y: Array = z * (-1.0 / score.rho)
    np.maximum(y, 1e-15 - 1.0, out=y)
    if everywhere(score.s * FEW_DIGITS_LOST >= 1.0):
        y += 1.0
        np.log(y, out=y)
    else:
        np.log1p(y, out=y)
    y *= -1.0 / score.s
    return y


def log_ratio(t: Real, score: Oriented) -> Real:
    """log(t/a); very negative where t <= 0."""
    if isinstance(t, float) and score.s * FEW_DIGITS_LOST >= 1.0:
        return math.log(max(t / score.a, TINY))
    if everywhere(score.s * FEW_DIGITS_LOST >= 1.0):
        return np.log(np.maximum(t / score.a, TINY))
    near = np.log1p(np.maximum((t - score.a) / score.a, -0.5))
    return near + np.log(np.maximum(np.minimum(2.0 * t / score.a, 1.0), TINY))


def everywhere(condition: Real) -> bool:
    return condition if isinstance(condition, bool) else bool(condition.all())
