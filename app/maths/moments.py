"""What the two Gaussian processes say of N people: all that the distribution of NS depends on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Moments:
    """Independent posteriors f1 ~ N(m1, v1) and f2 ~ N(m2, v2). v1 and v2 are variances, never standard deviations."""

    m1: Array  # [N] expected diameter, mm
    v1: Array  # [N] mm²
    m2: Array  # [N] expected log standard deviation, log mm
    v2: Array  # [N]
