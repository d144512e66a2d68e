"""What an optimiser reports, whichever it is."""

from collections.abc import Callable
from dataclasses import dataclass

Step = Callable[[float, float], None]  # takes the fraction of the work that is done, and the objective so far


@dataclass(frozen=True, slots=True)
class Outcome:
    iterations: int
    evaluations: int  # of the objective with its gradient
    message: str
