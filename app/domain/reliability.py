"""Why a score may deserve less trust: the reasons by code, and which of several decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from app.domain.score import Verdict

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
