"""Named float64 arrays: frozen once made, and checked one by one when they come from outside."""

from collections.abc import Mapping

import numpy as np

from app.maths.moments import Array


def freeze(*arrays: Array) -> None:
    """Make arrays read-only, so that a value built from them stays what it is."""
    for array in arrays:
        array.setflags(write=False)


class NamedArrays:
    """Arrays taken by name, each exactly once. Every fault is a ValueError that begins with the array's name."""

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
        """Refuse what nobody took."""
        for name in sorted(self._left):
            raise ValueError(f"{name}: does not belong here")
