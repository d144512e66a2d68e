"""A query: one measurement of one patient, and which numbers the answer should hold."""

from dataclasses import dataclass

from app.domain.convention import Convention
from app.domain.patient import Patient

NOT_STATED = Convention()


@dataclass(frozen=True, slots=True)
class ScoreQuery:
    patient: Patient
    diameter_mm: float
    thresholds: tuple[float, ...] = (2.0,)
    hdi_probability: float = 0.95
    measurement_sd_mm: float = 0.0  # observer error of this measurement; 0: not stated
    convention: Convention = NOT_STATED
    include_unreliable: bool = False  # give the numbers even where the verdict is `not_reliable`
