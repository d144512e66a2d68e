"""Nine significant digits: what single, batch, command line and backends agree on."""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.errors import UnverifiedResult

Array = NDArray[np.float64]

# For numbers from 10^e up to 10^(e+1): the power of ten that makes nine digits of them before the point. 10^22 is the
# largest one that a double holds exactly, so that numbers below 10^-14 or from 10^9 on have none.
DECADES = np.array([float(f"1e{e}") for e in range(-14, 10)])
POWERS = np.array([1.0, *(10.0**k for k in range(22, -1, -1)), 1.0])
# The distance of the product from the next integer at which it does not decide any more: its error is below 2e-7.
DECIDED = np.array([-1.0, *[0.5 - 1e-6] * 23, -1.0])


def significant(value: float) -> float:
    """The nearest number of nine digits, in the same order, never -0. Raises UnverifiedResult for infinity and NaN."""
    if value - value != 0.0:  # infinite, or not a number
        raise UnverifiedResult("A number is not finite.")
    return float(f"{value:.9g}") + 0.0


def significant_columns(values: Array) -> Array:
    """The same for a whole array, to the same bits; infinity and NaN remain.

    x = n / 10^k with an integer n of nine digits and an exact power of ten: the quotient of two exact numbers is the
    double nearest to the decimal number, just as if it were read from its text. What lies within 1e-6 of a tie, and
    what is too small or too large for such a k, is rounded by its text.
    """
    decade = DECADES.searchsorted(np.abs(values), side="right")
    power = POWERS.take(decade)
    scaled = values * power
    rounded: Array = np.rint(scaled)
    scaled -= rounded
    np.abs(scaled, out=scaled)
    rest = np.flatnonzero(scaled > DECIDED.take(decade))
    rounded /= power
    if rest.size:
        rounded.flat[rest] = [float(f"{value:.9g}") + 0.0 for value in values.flat[rest].tolist()]
    return rounded


def rounded(value: object) -> Any:
    """A frozen value as plain dicts, lists and numbers, ready for JSON, every float to nine digits."""
    return _round(msgspec.to_builtins(value))


def _round(value: Any) -> Any:
    kind = type(value)  # exact: `to_builtins` makes nothing else, and every answer passes through here
    if kind is float:
        return significant(value)
    if kind is dict:
        return {key: _round(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [_round(item) for item in value]
    return value
