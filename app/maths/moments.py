"""What the two Gaussian processes say about N people, and intervals of what follows from it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# A float for one person, an Array for many: the formulas are the same, and floats spare one person NumPy's overhead.
Real = Any


def freeze(*arrays: Array) -> None:
    """Make arrays read-only, so that a value built from them stays what it is."""
    for array in arrays:
        array.setflags(write=False)


@dataclass(frozen=True, slots=True)
class Moments:
    """Independent posteriors f1 ~ N(m1, v1) and f2 ~ N(m2, v2). v1 and v2 are variances, never standard deviations."""

    m1: Array  # [N] expected diameter, mm
    v1: Array  # [N] mm²
    m2: Array  # [N] expected log standard deviation, log mm
    v2: Array  # [N]


class Intervals(NamedTuple):
    low: Real  # [N]
    high: Real  # [N], never below low

    @property
    def width(self) -> Real:
        return self.high - self.low
