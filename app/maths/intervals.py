"""An interval for each of N people."""

from dataclasses import dataclass

from app.maths.moments import Array


@dataclass(frozen=True, slots=True)
class Intervals:
    low: Array  # [N]
    high: Array  # [N], never below low

    @property
    def width(self) -> Array:
        return self.high - self.low
