"""The normal deviate x(z) that T <= t becomes once one of Z1, Z2 is held at z.

Given Z2 = z the event T <= t is Z1 >= (a - t e^{sz})/b; given Z1 = z it is Z2 >= log((a - bz)/t)/s. Either way

    P(T <= t) = E[Phi(x(Z))],   x2(z) = (t e^{sz} - a)/b,   x1(z) = (log(t/a) - log(1 - z/rho))/s,

and we integrate over the variable along which x is less steep. With s1 = 0 the second form is the lognormal
distribution, with s2 = 0 the first is the normal one: neither limit needs a case of its own.
"""

import numpy as np

from app.maths.moments import Array
from app.maths.oriented import TINY, Oriented
from app.maths.quadrature import Real

# Along Z1 the integrand is singular at Z1 = rho; from here on that point weighs less than 1e-20.
FAR_FROM_ZERO = 9.5
# Phi(x2) still turns up to x2 = 4, where its slope is s(rho + 4); with 3 the errors grow tenfold at rho = 0, s2 > 1.
TURN = 4.0
# Up to rho = 1000, or from s2 = 1/1000 on, exp and log serve as well as expm1 and log1p, which take thrice the time:
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
    return np.asarray(shift(score, z) + log_ratio(t, score) / score.s)


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
    if everywhere(score.s * FEW_DIGITS_LOST >= 1.0):
        return np.log(np.maximum(t / score.a, TINY))
    near = np.log1p(np.maximum((t - score.a) / score.a, -0.5))
    return near + np.log(np.maximum(np.minimum(2.0 * t / score.a, 1.0), TINY))


def everywhere(condition: Real) -> bool:
    return condition if isinstance(condition, bool) else bool(condition.all())
