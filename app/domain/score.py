"""Where a score lies against -2 and 2, and how far it may be trusted: the words of an answer."""

from typing import Literal, NamedTuple

Position = Literal["above_2", "below_minus_2", "within", "uncertain", "not_assessed"]
Verdict = Literal["ok", "caution", "not_reliable"]

# How sure a position must be: the 2.5% on either side of a 95% interval.
SURE = 0.975
UNLIKELY = 0.025


class Tails(NamedTuple):
    """What a position rests on, whatever thresholds were asked for."""

    above_2: float  # P(NS > 2)
    below_minus_2: float  # P(NS < -2)


def position(tails: Tails) -> Position:
    if tails.above_2 >= SURE:
        return "above_2"
    if tails.below_minus_2 >= SURE:
        return "below_minus_2"
    return "within" if max(tails) <= UNLIKELY else "uncertain"
