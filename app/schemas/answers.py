"""The responses to measurements: the one definition of every field, its meaning, unit and range.

Plain frozen dataclasses: the scorer fills them, `app.formats.answer` rounds and encodes them, FastAPI documents them.
Field order is the order on the wire. No field has a default: every response has them all, some of them null.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.domain.convention import Edge, Modality, Phase
from app.domain.reliability import ReasonCode
from app.domain.score import Position, Verdict
from app.schemas.base import REQUEST_ID, SHA256

AdvisoryCode = Literal["absolute_diameter", "convention_not_stated", "far_out", "bmi_high"]
NotApplicableCode = Literal["outside_training_range", "spread_not_credible"]

Millimetres = Annotated[float, Field(description="mm")]
Probability = Annotated[float, Field(ge=0, le=1)]
Percent = Annotated[float, Field(ge=0, le=100)]


class _Closed:
    """Objects of these classes have no fields but the ones listed."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Hdi(_Closed):
    """The shortest interval of the score that holds the probability."""

    probability: Annotated[float, Field(ge=0.5, le=0.99)]
    low: float
    high: float
    width: Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Exceedance(_Closed):
    threshold: Annotated[float, Field(ge=-10, le=10)]
    probability: Annotated[Probability, Field(description="P(NS > threshold).")]
    probability_below: Annotated[Probability, Field(description="P(NS < threshold).")]


@dataclass(frozen=True, slots=True)
class Score(_Closed):
    expected_ns: Annotated[
        float, Field(description="The expected normalcy score. It need not lie inside the interval.")
    ]
    hdi: Hdi
    exceedance: tuple[Exceedance, ...]
    position: Annotated[
        Position, Field(description="Where the score lies against -2 and 2, whatever thresholds were asked for.")
    ]


@dataclass(frozen=True, slots=True)
class ScoreWithMeasurementError(_Closed):
    """The score of the error-free diameter under a flat prior."""

    hdi: Hdi
    exceedance: tuple[Exceedance, ...]


@dataclass(frozen=True, slots=True)
class IntervalMm(_Closed):
    probability: Probability
    low: Millimetres
    high: Millimetres


@dataclass(frozen=True, slots=True)
class DiameterAtThreshold(_Closed):
    """Quantiles of the diameter whose score is the threshold, f1 + threshold · exp(f2)."""

    threshold: float
    median: Annotated[
        float, Field(description="mm; beyond it the probability of exceeding the threshold is above one half.")
    ]
    low: Annotated[float, Field(description="mm, 2.5%")]
    high: Annotated[float, Field(description="mm, 97.5%")]


@dataclass(frozen=True, slots=True)
class Reference(_Closed):
    """What is expected of the reference people at this context. The first four numbers rebuild every result."""

    expected_diameter_mm: Annotated[float, Field(description="m1, mm")]
    expected_diameter_sd_mm: Annotated[float, Field(description="sqrt(v1), mm", ge=0)]
    aleatoric_sd_mm: Annotated[float, Field(description="exp(m2), mm: the posterior median of the spread", gt=0)]
    aleatoric_sd_log_se: Annotated[float, Field(description="sqrt(v2)", ge=0)]
    interval_mm: Annotated[IntervalMm, Field(description="Central 95% of the posterior predictive distribution, mm.")]
    percentile: Annotated[Percent, Field(description="Of the measurement among the reference people, %.")]
    diameter_at_threshold_mm: tuple[DiameterAtThreshold, ...]


@dataclass(frozen=True, slots=True)
class NotApplicable(_Closed):
    """Why a comparator is null."""

    code: NotApplicableCode
    field: Literal["linear_z", "altman_z"]
    message: str


@dataclass(frozen=True, slots=True)
class Comparators(_Closed):
    """Older ways to the same question; null where one does not apply."""

    linear_z: float | None
    altman_z: float | None
    diameter_per_bsa_mm_m2: Annotated[float, Field(description="mm/m²")]
    diameter_per_height_cm_m: Annotated[float, Field(description="cm/m")]
    area_per_height_cm2_m: Annotated[float, Field(description="cm²/m")]
    not_applicable: tuple[NotApplicable, ...]


@dataclass(frozen=True, slots=True)
class Reason(_Closed):
    code: ReasonCode
    message: str


@dataclass(frozen=True, slots=True)
class Reliability(_Closed):
    """How far to trust the score, judged from who was measured and how, never from the diameter."""

    verdict: Verdict
    context_hdi_width: Annotated[float, Field(description="W2: width of the 95% interval at a score of 2.", ge=0)]
    context_hdi_width_percentile: Annotated[Percent, Field(description="Of W2 among the training people, %.")]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Advisory(_Closed):
    """What a reader should know beside the score. An advisory never withholds anything."""

    code: AdvisoryCode
    field: str
    message: str


@dataclass(frozen=True)
class Answer(_Closed):
    """All numbers of one measurement, at full precision when they come from the scorer."""

    score: Annotated[Score | None, Field(description="null where it is withheld: verdict `not_reliable`.")]
    score_with_measurement_error: ScoreWithMeasurementError | None
    reference: Reference | None
    comparators: Comparators | None
    reliability: Reliability
    advisories: tuple[Advisory, ...]

    @property
    def position(self) -> Position:
        return self.score.position if self.score else "not_assessed"


@dataclass(frozen=True, slots=True)
class Summary(_Closed):
    clinician: str
    patient: str


@dataclass(frozen=True, slots=True)
class ModelConvention(_Closed):
    """How the diameters of the training people were measured; null where it was not stated."""

    edge: Edge | None
    phase: Phase | None
    modality: Modality | None


@dataclass(frozen=True, slots=True)
class ModelProvenance(_Closed):
    site: str
    version: str
    sha256: Annotated[str, Field(pattern=SHA256)]
    cohort: Annotated[str, Field(description="`simulated` for every model that ships with the project.")]
    cohort_size: int
    convention: ModelConvention


@dataclass(frozen=True, slots=True)
class ServiceInfo(_Closed):
    """Which program answered: the same for all responses of a process."""

    version: str
    commit: str
    backend: Literal["numpy", "tensorflow"]
    device: str


@dataclass(frozen=True, slots=True)
class Provenance(_Closed):
    model: ModelProvenance
    service: ServiceInfo
    computed_at: Annotated[str, Field(description="UTC, RFC 3339.", examples=["2026-11-15T10:30:00.123Z"])]
    intended_use: str


@dataclass(frozen=True)
class _Who(_Closed):
    age_years: Annotated[float, Field(description="Years.")]
    reference_sex: Literal["male", "female"]
    height_cm: Annotated[float, Field(description="cm")]
    weight_kg: Annotated[float, Field(description="kg")]


@dataclass(frozen=True)
class _Measured(_Closed):
    diameter_mm: Millimetres


@dataclass(frozen=True)
class _BodySizes(_Closed):
    bsa_m2: Annotated[float, Field(description="Body surface area, m².")]
    bsa_formula: Literal["Haycock"]
    bmi_kg_m2: Annotated[float, Field(description="Body mass index, kg/m².")]


@dataclass(frozen=True)
class PatientInput(_BodySizes, _Who):
    """The patient as the service read the request, with the body sizes that follow."""


@dataclass(frozen=True)
class MeasurementInput(_BodySizes, _Measured, _Who):
    """The measurement as the service read the request, with the body sizes that follow."""


RequestId = Annotated[
    str, Field(description="As in `X-Request-ID`.", pattern=REQUEST_ID, examples=["echo-lab-7.2026-11-15"])
]


@dataclass(frozen=True)
class _Site(_Closed):
    site: str


@dataclass(frozen=True)
class _ScoreHead(_Closed):
    request_id: RequestId
    site: str
    input: MeasurementInput


@dataclass(frozen=True)
class _Explained(_Closed):
    summary: Summary
    provenance: Provenance


@dataclass(frozen=True)
class StudyResult(_Explained, Answer, _Site):
    """One measurement of a study."""


@dataclass(frozen=True)
class ScoreResponse(_Explained, Answer, _ScoreHead):
    """One measurement."""


@dataclass(frozen=True)
class StudyResponse(_Closed):
    """All measurements of one study."""

    request_id: RequestId
    input: PatientInput
    results: Annotated[tuple[StudyResult, ...], Field(description="One per measurement, in order.")]
