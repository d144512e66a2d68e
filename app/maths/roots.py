"""Roots of N increasing functions at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from app.errors import UnverifiedResult
from app.maths.moments import Array

Increasing = Callable[[Array, NDArray[np.intp]], Array]  # (x [R], which R of the N functions) -> values [R]

STEPS = 200  # halving alone needs 60 for the widest bracket, and at most every second step gains less
CLOSE = 1e-15  # of 1 + |x|


def increasing_root(function: Increasing, start: Array, low: Array, high: Array) -> Array:
    """The x [N] between low and high where each function passes 0.

    Secant steps, the first with slope 1, inside a bracket that only shrinks. A step that did not halve the function's
    value is followed by one that halves the bracket, so that no function can stall the search. Two secant steps in a
    row end it if one more of their ratio is within CLOSE: the next ratio is smaller still.
    """
    root, rows = np.empty_like(start), np.arange(start.size)
    x, value, length = start, np.full_like(start, np.inf), np.ones_like(start)
    trusted = np.zeros(start.size, dtype=bool)
    with np.errstate(all="ignore"):  # a flat function has no secant: infinite or not a number, it is not trusted
        for step in range(STEPS):
            last_value, value = value, function(x, rows)
            low, high = np.where(value <= 0, x, low), np.where(value >= 0, x, high)
            secant = -value * length / (value - last_value) if step else -value
            inside = (x + secant >= low) & (x + secant <= high)
            twice, trusted = trusted, inside & (np.abs(value) <= 0.5 * np.abs(last_value))
            last_length, length = length, np.where(trusted, secant, 0.5 * (low + high) - x)
            close = CLOSE * (1.0 + np.abs(x))
            done = (np.abs(length) <= close) & (trusted | (high - low <= close) | (value == 0))
            done |= trusted & twice & (length**2 <= close * np.abs(last_length))
            x = x + length
            root[rows[done]] = x[done]
            if done.all():
                return root
            if not done.any():
                continue
            more = ~done
            rows, low, high, trusted = rows[more], low[more], high[more], trusted[more]
            x, value, length = x[more], value[more], length[more]
    raise UnverifiedResult(f"No root was found for {rows.size} of {start.size} people.")
