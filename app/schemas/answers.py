"""The answers to readings. No field has a default: every answer has them all, some of them null."""

from typing import Literal

from pydantic import Field

from app.domain.convention import Edge, Modality, Phase
from app.domain.score import Position, Verdict
from app.schemas.base import SHA256, Described, Traced


class Hdi(Described):
    """The shortest interval of the score that holds the probability."""

    probability: float = Field(ge=0.5, le=0.99)
    low: float
    high: float
    width: float = Field(ge=0)


class Exceedance(Described):
    threshold: float = Field(ge=-10, le=10)
    probability: float = Field(description="P(NS > threshold).", ge=0, le=1)
    probability_below: float = Field(description="P(NS < threshold).", ge=0, le=1)


class Score(Described):
    expected_ns: float = Field(description="The expected normalcy score. It need not lie inside the interval.")
    hdi: Hdi
    exceedance: list[Exceedance]
    position: Position = Field(description="Where the score lies against -2 and 2, whatever thresholds were asked for.")


class ScoreWithMeasurementError(Described):
    """The score of the error-free diameter under a flat prior."""

    hdi: Hdi
    exceedance: list[Exceedance]


class IntervalMm(Described):
    probability: float = Field(ge=0, le=1)
    low: float = Field(description="mm")
    high: float = Field(description="mm")


class DiameterAtThreshold(Described):
    threshold: float
    median: float = Field(description="mm; beyond it the probability of exceeding the threshold is above one half.")
    low: float = Field(description="mm, 2.5%")
    high: float = Field(description="mm, 97.5%")


class Reference(Described):
    """What is expected of the reference people at this context. The first four numbers rebuild every result."""

    expected_diameter_mm: float = Field(description="m1, mm")
    expected_diameter_sd_mm: float = Field(description="sqrt(v1), mm", ge=0)
    aleatoric_sd_mm: float = Field(description="exp(m2), mm: the posterior median of the spread", gt=0)
    aleatoric_sd_log_se: float = Field(description="sqrt(v2)", ge=0)
    interval_mm: IntervalMm = Field(description="Central 95% of the posterior predictive distribution, mm.")
    percentile: float = Field(description="Of the reading among the reference people, %.", ge=0, le=100)
    diameter_at_threshold_mm: list[DiameterAtThreshold]


class Advisory(Described):
    code: str
    field: str
    message: str


class Comparators(Described):
    """Older ways to the same question; null where one does not apply."""

    linear_z: float | None
    altman_z: float | None
    diameter_per_bsa_mm_m2: float = Field(description="mm/m²")
    diameter_per_height_cm_m: float = Field(description="cm/m")
    area_per_height_cm2_m: float = Field(description="cm²/m")
    not_applicable: list[Advisory]


class Reason(Described):
    code: str
    message: str


class Reliability(Described):
    """How far to trust the score, judged from who was measured and how, never from the diameter."""

    verdict: Verdict
    context_hdi_width: float = Field(description="W2: width of the 95% interval at a score of 2.", ge=0)
    context_hdi_width_percentile: float = Field(description="Of W2 among the training people, %.", ge=0, le=100)
    reasons: list[Reason]


class Summary(Described):
    clinician: str
    patient: str


class ModelConvention(Described):
    edge: Edge | None
    phase: Phase | None
    modality: Modality | None


class ModelProvenance(Described):
    site: str
    version: str
    sha256: str = Field(pattern=SHA256)
    cohort: str = Field(description="`simulated` for every model that ships with the project.")
    cohort_size: int
    convention: ModelConvention


class ServiceProvenance(Described):
    version: str
    commit: str
    backend: Literal["numpy", "tensorflow"]
    device: str


class Provenance(Described):
    model: ModelProvenance
    service: ServiceProvenance
    computed_at: str = Field(description="UTC, RFC 3339.", examples=["2026-11-15T10:30:00.123Z"])
    intended_use: str


class Judged(Described):
    site: str
    score: Score | None = Field(description="null where it is withheld: verdict `not_reliable`.")
    score_with_measurement_error: ScoreWithMeasurementError | None
    reference: Reference | None
    comparators: Comparators | None
    reliability: Reliability
    advisories: list[Advisory]
    summary: Summary
    provenance: Provenance


class PatientInput(Described):
    """What was judged, as it was understood, with the body sizes that follow."""

    age_years: float
    reference_sex: Literal["male", "female"]
    height_cm: float
    weight_kg: float
    bsa_m2: float = Field(description="Body surface area, m².")
    bsa_formula: Literal["Haycock"]
    bmi_kg_m2: float = Field(description="Body mass index, kg/m².")


class ReadingInput(PatientInput):
    diameter_mm: float


class ScoreAnswer(Judged, Traced):
    input: ReadingInput


class StudyAnswer(Traced):
    input: PatientInput
    results: list[Judged] = Field(description="One per measurement, in order.")
