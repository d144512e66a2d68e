"""Roots of N increasing functions at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from app.errors import NumbersNotTrusted
from app.maths.moments import Array

Increasing = Callable[[Array, NDArray[np.intp]], Array]  # (x [R], which R of the N functions) -> values [R]

STEPS = 200  # halving alone needs 60 for the widest bracket, and at most every second step gains less
CLOSE = 1e-13  # of 1 + |x|


def increasing_root(function: Increasing, start: Array, low: Array, high: Array) -> Array:
    """The x [N] between low and high where each function passes 0.

    Secant steps, the first with slope 1, inside a bracket that only shrinks. A step that did not halve the function's
    value is followed by one that halves the bracket, so that no function can stall the search. Two secant steps whose
    product is within CLOSE end it: the next error is of the order of that product.
    """
    root, rows = np.empty_like(start), np.arange(start.size)
    x, value, slope, length = start, np.full_like(start, np.inf), np.ones_like(start), np.ones_like(start)
    for step in range(STEPS):
        last_value, value = value, function(x, rows)
        low, high = np.where(value <= 0, x, low), np.where(value >= 0, x, high)
        if step:
            slope = (value - last_value) / length
        secant = -value / slope
        trusted = (np.abs(value) <= 0.5 * np.abs(last_value)) & (x + secant >= low) & (x + secant <= high)
        last_length, length = length, np.where(trusted, secant, 0.5 * (low + high) - x)
        close = CLOSE * (1.0 + np.abs(x))
        done = (np.abs(length) <= close) | (trusted & (np.abs(length * last_length) <= close) & (step > 0))
        x = x + length
        root[rows[done]] = x[done]
        if done.all():
            return root
        more = ~done
        rows, x, value, length, low, high = rows[more], x[more], value[more], length[more], low[more], high[more]
    raise NumbersNotTrusted(f"No root was found for {rows.size} of {start.size} people.")
