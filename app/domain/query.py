"""What a caller asks: one reading of one patient, and how the answer should be cut."""

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
    measurement_sd_mm: float = 0.0  # observer error of this reading; 0: not asked for
    convention: Convention = NOT_STATED
    include_unreliable: bool = False  # give the numbers even where the verdict is `not_reliable`
