"""What the scheduled verification of the audit found last, for readiness and the metrics."""

from dataclasses import dataclass
from typing import Literal

VerificationOutcome = Literal["pending", "off", "intact", "tampered", "not_permitted", "failed"]


@dataclass(slots=True)
class VerificationState:
    outcome: VerificationOutcome = "pending"  # of the last run
    last_intact: float = 0.0  # Unix time; 0: not since the start
