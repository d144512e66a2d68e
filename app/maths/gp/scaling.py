"""The standardisation a model was trained in, and a checked reader of a model's named float64 arrays."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from app.maths.moments import Array, freeze


class NamedArrays:
    """Arrays taken by name, each exactly once. Every error is a ValueError that begins with the array's name."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._left = dict(arrays)

    def take(self, name: str, shape: tuple[int | None, ...], *, above: float = -np.inf) -> Array:
        """A copy of the array, finite float64, each number greater than `above`; None in `shape`: any length."""
        if name not in self._left:
            raise ValueError(f"{name}: is missing")
        array = self._left.pop(name)
        if array.dtype != np.float64:
            raise ValueError(f"{name}: holds {array.dtype}, not float64")
        if array.ndim != len(shape) or array.shape != tuple(
            have if want is None else want for want, have in zip(shape, array.shape, strict=True)
        ):
            raise ValueError(f"{name}: has shape {array.shape}, not {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: holds a number that is not finite")
        if not (array > above).all():
            raise ValueError(f"{name}: holds a number that is not above {above:g}")
        return np.array(array)

    def number(self, name: str, *, above: float = -np.inf) -> float:
        return float(self.take(name, (), above=above))

    def finish(self) -> None:
        """Raise for arrays that were not taken."""
        for name in sorted(self._left):
            raise ValueError(f"{name}: does not belong here")


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """x -> (x - x_mean) / x_sd and y -> (y - y_center) / y_scale."""

    x_mean: Array  # [D]
    x_sd: Array  # [D]
    y_center: float  # mm
    y_scale: float  # mm

    def __post_init__(self) -> None:
        freeze(self.x_mean, self.x_sd)

    @classmethod
    def of(cls, X: Array, y: Array) -> "Scaling":
        """From training people: mean and sd of each covariate, median and sd of y (a few wild y move a mean)."""
        return cls(X.mean(axis=0), _spread(X), float(np.median(y)), float(_spread(y)))

    def standardise(self, X: Array) -> Array:
        return (X - self.x_mean) / self.x_sd

    def standardise_y(self, y: Array) -> Array:
        return (y - self.y_center) / self.y_scale

    def arrays(self) -> dict[str, Array]:
        return {
            "x_mean": self.x_mean,
            "x_sd": self.x_sd,
            "y_center": np.array(self.y_center),
            "y_scale": np.array(self.y_scale),
        }

    @classmethod
    def from_arrays(cls, arrays: NamedArrays) -> "Scaling":
        x_mean = arrays.take("x_mean", (None,))
        x_sd = arrays.take("x_sd", x_mean.shape, above=0.0)
        return cls(x_mean, x_sd, arrays.number("y_center"), arrays.number("y_scale", above=0.0))


def _spread(values: Array) -> Array:
    """Standard deviation along the people; a column that never varies (but for rounding) keeps its own unit."""
    sd = values.std(axis=0)
    return np.where(sd > 1e-12 * np.abs(values).max(axis=0), sd, 1.0)
