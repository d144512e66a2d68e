"""Where a score lies against -2 and 2, how far it may be trusted, and why: the words of an answer.

Reasons have codes; of several, one decides the verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

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


OUTSIDE: Final = "outside_training_range"
EDGE: Final = "edge_of_training_range"
DIFFERS: Final = "convention_differs"
WIDE: Final = "wide_interval"
SPARSE: Final = "sparse_context"

ReasonCode = Literal[
    "outside_training_range", "edge_of_training_range", "convention_differs", "wide_interval", "sparse_context"
]

# Of the reasons that lead to one verdict: who was measured before how, and both before the widths that follow.
DECIDING_ORDER = (OUTSIDE, DIFFERS, EDGE, WIDE, SPARSE)


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason with what it leads to: the sentences need to know, the response names only code and message."""

    code: ReasonCode
    message: str
    verdict: Verdict  # that it leads to by itself
    about: str  # what it concerns, such as "height"


def worst_verdict(findings: Sequence[Finding]) -> Verdict:
    verdicts = {finding.verdict for finding in findings}
    return "not_reliable" if "not_reliable" in verdicts else "caution" if verdicts else "ok"


def deciding_finding(findings: Sequence[Finding]) -> Finding | None:
    """The one that sentences give: it leads to the verdict by itself. None where the verdict is `ok`."""
    verdict = worst_verdict(findings)
    decisive = [finding for finding in findings if finding.verdict == verdict]
    return min(decisive, key=lambda finding: DECIDING_ORDER.index(finding.code), default=None)
