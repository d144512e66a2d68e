"""The responses to measurements: the one definition of every field, its meaning, unit and range.

Plain frozen dataclasses: the scorer fills them, `app.formats.answer` rounds and encodes them, FastAPI documents them.
Field order is the order on the wire. No field has a default: every response has them all, some of them null.
"""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field

from app.domain.convention import Edge, Modality, Phase
from app.domain.reliability import ReasonCode
from app.domain.score import Position, Verdict
from app.schemas.base import REQUEST_ID, SHA256

T = TypeVar("T")

AdvisoryCode = Literal["absolute_diameter", "convention_not_stated", "far_out", "bmi_high"]
NotApplicableCode = Literal["outside_training_range", "spread_not_credible"]

Millimetres = Annotated[float, Field(description="mm")]
Probability = Annotated[float, Field(ge=0, le=1)]
Percent = Annotated[float, Field(ge=0, le=100)]


class _Closed:
    """Objects of these classes have no fields but the ones listed."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


@dataclass_transform(frozen_default=True)
def _part(cls: type[T]) -> type[T]:
    """A dataclass that mypy holds to be frozen. At run time it is not: making a frozen one takes five times as long."""
    return dataclass(slots=True)(cls)


@dataclass_transform(frozen_default=True)
def _composed(cls: type[T]) -> type[T]:
    """The same for classes that others are composed of, which slots do not allow."""
    return dataclass(cls)


@_part
class Hdi(_Closed):
    """The shortest interval of the score that holds the probability."""

    probability: Annotated[float, Field(ge=0.5, le=0.99)]
    low: float
    high: float
    width: Annotated[float, Field(ge=0)]


@_part
class Exceedance(_Closed):
    threshold: Annotated[float, Field(ge=-10, le=10)]
    probability: Annotated[Probability, Field(description="P(NS > threshold).")]
    probability_below: Annotated[Probability, Field(description="P(NS < threshold).")]


@_part
class Score(_Closed):
    expected_ns: Annotated[
        float, Field(description="The expected normalcy score. It need not lie inside the interval.")
    ]
    hdi: Hdi
    exceedance: tuple[Exceedance, ...]
    position: Annotated[
        Position, Field(description="Where the score lies against -2 and 2, whatever thresholds were asked for.")
    ]


@_part
class ScoreWithMeasurementError(_Closed):
    """The score of the error-free diameter under a flat prior."""

    hdi: Hdi
    exceedance: tuple[Exceedance, ...]


@_part
class IntervalMm(_Closed):
    probability: Probability
    low: Millimetres
    high: Millimetres


@_part
class DiameterAtThreshold(_Closed):
    """Quantiles of the diameter whose score is the threshold, f1 + threshold · exp(f2)."""

    threshold: float
    median: Annotated[
        float, Field(description="mm; beyond it the probability of exceeding the threshold is above one half.")
    ]
    low: Annotated[float, Field(description="mm, 2.5%")]
    high: Annotated[float, Field(description="mm, 97.5%")]


@_part
class Reference(_Closed):
    """What is expected of the reference people at this context. The first four numbers rebuild every result."""

    expected_diameter_mm: Annotated[float, Field(description="m1, mm")]
    expected_diameter_sd_mm: Annotated[float, Field(description="sqrt(v1), mm", ge=0)]
    aleatoric_sd_mm: Annotated[float, Field(description="exp(m2), mm: the posterior median of the spread", gt=0)]
    aleatoric_sd_log_se: Annotated[float, Field(description="sqrt(v2)", ge=0)]
    interval_mm: Annotated[IntervalMm, Field(description="Central 95% of the posterior predictive distribution, mm.")]
    percentile: Annotated[Percent, Field(description="Of the measurement among the reference people, %.")]
    diameter_at_threshold_mm: tuple[DiameterAtThreshold, ...]


@_part
class NotApplicable(_Closed):
    """Why a comparator is null."""

    code: NotApplicableCode
    field: Literal["linear_z", "altman_z"]
    message: str


@_part
class Comparators(_Closed):
    """Older ways to the same question; null where one does not apply."""

    linear_z: float | None
    altman_z: float | None
    diameter_per_bsa_mm_m2: Annotated[float, Field(description="mm/m²")]
    diameter_per_height_cm_m: Annotated[float, Field(description="cm/m")]
    area_per_height_cm2_m: Annotated[float, Field(description="cm²/m")]
    not_applicable: tuple[NotApplicable, ...]


@_part
class Reason(_Closed):
    code: ReasonCode
    message: str


@_part
class Reliability(_Closed):
    """How far to trust the score, judged from who was measured and how, never from the diameter."""

    verdict: Verdict
    context_hdi_width: Annotated[float, Field(description="W2: width of the 95% interval at a score of 2.", ge=0)]
    context_hdi_width_percentile: Annotated[Percent, Field(description="Of W2 among the training people, %.")]
    reasons: tuple[Reason, ...]


@_part
class Advisory(_Closed):
    """What a reader should know beside the score. An advisory never withholds anything."""

    code: AdvisoryCode
    field: str
    message: str


@_composed
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


@_part
class Summary(_Closed):
    clinician: str
    patient: str


@_part
class ModelConvention(_Closed):
    """How the diameters of the training people were measured; null where it was not stated."""

    edge: Edge | None
    phase: Phase | None
    modality: Modality | None


@_part
class ModelProvenance(_Closed):
    site: str
    version: str
    sha256: Annotated[str, Field(pattern=SHA256)]
    cohort: Annotated[str, Field(description="`simulated` for every model that ships with the project.")]
    cohort_size: int
    convention: ModelConvention


@_part
class ServiceInfo(_Closed):
    """Which program answered: the same for all responses of a process."""

    version: str
    commit: str
    backend: Literal["numpy", "tensorflow"]
    device: str


@_part
class Provenance(_Closed):
    model: ModelProvenance
    service: ServiceInfo
    computed_at: Annotated[str, Field(description="UTC, RFC 3339.", examples=["2026-11-15T10:30:00.123Z"])]
    intended_use: str


@_composed
class _Who(_Closed):
    age_years: Annotated[float, Field(description="Years.")]
    reference_sex: Literal["male", "female"]
    height_cm: Annotated[float, Field(description="cm")]
    weight_kg: Annotated[float, Field(description="kg")]


@_composed
class _Measured(_Closed):
    diameter_mm: Millimetres


@_composed
class _BodySizes(_Closed):
    bsa_m2: Annotated[float, Field(description="Body surface area, m².")]
    bsa_formula: Literal["Haycock"]
    bmi_kg_m2: Annotated[float, Field(description="Body mass index, kg/m².")]


@_composed
class PatientInput(_BodySizes, _Who):
    """The patient as the service read the request, with the body sizes that follow."""


@_composed
class MeasurementInput(_BodySizes, _Measured, _Who):
    """The measurement as the service read the request, with the body sizes that follow."""


RequestId = Annotated[
    str, Field(description="As in `X-Request-ID`.", pattern=REQUEST_ID, examples=["echo-lab-7.2026-11-15"])
]


@_composed
class _Site(_Closed):
    site: str


@_composed
class _ScoreHead(_Closed):
    request_id: RequestId
    site: str
    input: MeasurementInput


@_composed
class _Explained(_Closed):
    summary: Summary
    provenance: Provenance


@_composed
class StudyResult(_Explained, Answer, _Site):
    """One measurement of a study."""


@_composed
class ScoreResponse(_Explained, Answer, _ScoreHead):
    """One measurement."""


@_composed
class StudyResponse(_Closed):
    """All measurements of one study."""

    request_id: RequestId
    input: PatientInput
    results: Annotated[tuple[StudyResult, ...], Field(description="One per measurement, in order.")]
