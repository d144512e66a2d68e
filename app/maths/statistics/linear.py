"""The comparators: the linear Z-score and Altman's method, by least squares on (1, covariates)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.maths.moments import Array

# E|e| = sd·sqrt(2/π) for a normal residual e, so the expected absolute residual times this is its sd.
SD_PER_MEAN_ABSOLUTE = float(np.sqrt(np.pi / 2.0))

# A linear model of |residual| can cross zero. Below a quarter of the overall spread it no longer describes people.
SMALLEST_SD_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class LinearReference:
    """y = xb + e with x = (1, covariates).

    Linear:  Z = (y - xb)/S,       S² = mean squared residual of the training people.
    Altman:  Z = (y - xb)/SD(x),   SD(x) = sqrt(π/2)·xg, g by least squares of |residual| on x.
    """

    coefficients: Array  # [D+1] b, mm per unit, the constant first
    residual_sd: float  # S, mm
    absolute_residual_coefficients: Array  # [D+1] g
    _both: Array = field(init=False, repr=False, compare=False)  # [D+1, 2] b and g side by side

    def __post_init__(self) -> None:
        object.__setattr__(self, "_both", np.column_stack([self.coefficients, self.absolute_residual_coefficients]))

    def z_scores(self, X: Array, y: Sequence[float]) -> list[tuple[float, float | None]]:
        """The linear and Altman's Z of each person, the second None where its spread cannot be believed."""
        smallest = SMALLEST_SD_SHARE * self.residual_sd / SD_PER_MEAN_ABSOLUTE
        found = []
        for diameter, (expected, absolute) in zip(y, (X @ self._both[1:] + self._both[0]).tolist(), strict=True):
            residual = diameter - expected
            altman = residual / (SD_PER_MEAN_ABSOLUTE * absolute) if absolute >= smallest else None
            found.append((residual / self.residual_sd, altman))
        return found

    def expected(self, X: Array) -> Array:
        return np.asarray(X @ self.coefficients[1:] + self.coefficients[0])

    def linear_z(self, X: Array, y: Array) -> Array:
        return (y - self.expected(X)) / self.residual_sd

    def altman_sd(self, X: Array) -> Array:
        """[N] mm as the formula gives it, negative where the line has crossed zero."""
        g = self.absolute_residual_coefficients
        return np.asarray(SD_PER_MEAN_ABSOLUTE * (X @ g[1:] + g[0]))

    def altman_applies(self, X: Array) -> NDArray[np.bool_]:
        return self.altman_sd(X) >= SMALLEST_SD_SHARE * self.residual_sd

    def altman_z(self, X: Array, y: Array) -> Array:
        """To be read only where `altman_applies`."""
        return (y - self.expected(X)) / self.altman_sd(X)


def fit_linear(X: Array, y: Array) -> LinearReference:
    design = _with_constant(X)
    coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
    residuals = y - design @ coefficients
    spread = np.linalg.lstsq(design, np.abs(residuals), rcond=None)[0]
    return LinearReference(coefficients, float(np.sqrt(np.mean(residuals**2))), spread)


def _with_constant(X: Array) -> Array:
    return np.column_stack([np.ones(len(X)), X])
