"""The responses to measurements: the one definition of every field, its meaning, unit and range.

Plain frozen dataclasses: `app.inference.answer_columns` fills them with rounded numbers, `app.formats.response` encodes
them, FastAPI documents them.
Field order is the order on the wire. No field has a default: every response has them all, some of them null.
"""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field

from app.domain.query import Edge, Modality, Phase
from app.domain.score import Position, ReasonCode, Verdict
from app.schemas.base import SHA256, RequestId
from app.schemas.validation import ErrorCode

T = TypeVar("T")

AdvisoryCode = Literal["absolute_diameter", "convention_not_stated", "far_out", "bmi_high"]
NotApplicableCode = Literal["outside_training_range", "spread_not_credible"]

Probability = Annotated[float, Field(ge=0, le=1)]
Percent = Annotated[float, Field(ge=0, le=100)]


class NoExtraFields:
    """Objects of these classes have no fields but the ones listed."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


@dataclass_transform(frozen_default=True)
def slots_dataclass(cls: type[T]) -> type[T]:
    """A dataclass that mypy holds to be frozen. At run time it is not: making a frozen one takes five times as long."""
    return dataclass(slots=True)(cls)


@dataclass_transform(frozen_default=True)
def inheritable_dataclass(cls: type[T]) -> type[T]:
    """The same for classes that others are composed of, which slots do not allow.

    A dataclass takes the fields of its last base first. Bases are therefore listed from the end of the object to its
    beginning: `(_SummaryAndProvenance, Answer, _ScoreHead)` is head, answer, summary on the wire.
    """
    return dataclass(cls)


@slots_dataclass
class Hdi(NoExtraFields):
    """The shortest interval of the score that contains the probability."""

    probability: Annotated[float, Field(description="Probability contained in the interval.", ge=0.5, le=0.99)]
    low: Annotated[float, Field(description="Its lower end.")]
    high: Annotated[float, Field(description="Its upper end.")]
    width: Annotated[float, Field(description="`high` minus `low`.", ge=0)]


@slots_dataclass
class Exceedance(NoExtraFields):
    """The probabilities on both sides of a threshold."""

    threshold: Annotated[float, Field(description="The threshold, a score.", ge=-10, le=10)]
    probability: Annotated[Probability, Field(description="Probability that the score exceeds the threshold.")]
    probability_below: Annotated[Probability, Field(description="Probability that the score is below the threshold.")]


@slots_dataclass
class Score(NoExtraFields):
    """The normalcy score: by how many standard deviations the diameter exceeds the expected one."""

    expected_ns: Annotated[
        float, Field(description="The expected normalcy score. It need not lie inside the interval.")
    ]
    hdi: Hdi
    exceedance: Annotated[tuple[Exceedance, ...], Field(description="One for each threshold, in order.")]
    position: Annotated[
        Position, Field(description="Where the score lies against -2 and 2, whatever thresholds were asked for.")
    ]


@slots_dataclass
class ScoreWithMeasurementError(NoExtraFields):
    """The score of the error-free diameter under a flat prior."""

    hdi: Hdi
    exceedance: Annotated[tuple[Exceedance, ...], Field(description="One for each threshold, in order.")]


@slots_dataclass
class IntervalMm(NoExtraFields):
    """An interval of diameters."""

    probability: Annotated[Probability, Field(description="Probability contained in the interval.")]
    low: Annotated[float, Field(description="Its lower end in mm.")]
    high: Annotated[float, Field(description="Its upper end in mm.")]


@slots_dataclass
class DiameterAtThreshold(NoExtraFields):
    """Quantiles of the diameter whose score is the threshold, f1 + threshold · exp(f2)."""

    threshold: Annotated[float, Field(description="The threshold, a score.")]
    median: Annotated[
        float,
        Field(description="Median in mm. Above it the probability of exceeding the threshold is more than one half."),
    ]
    low: Annotated[float, Field(description="2.5% quantile in mm.")]
    high: Annotated[float, Field(description="97.5% quantile in mm.")]


@slots_dataclass
class Reference(NoExtraFields):
    """What is expected for reference people of this age, sex, height and weight.

    Every other number can be recomputed from the first four and the diameter.
    """

    expected_diameter_mm: Annotated[float, Field(description="Expected diameter in mm (m1).")]
    expected_diameter_sd_mm: Annotated[
        float, Field(description="Standard error of the expected diameter in mm (√v1).", ge=0)
    ]
    aleatoric_sd_mm: Annotated[
        float,
        Field(description="Standard deviation among reference people in mm, posterior median (exp m2).", gt=0),
    ]
    aleatoric_sd_log_se: Annotated[
        float, Field(description="Standard error of the logarithm of `aleatoric_sd_mm` (√v2).", ge=0)
    ]
    interval_mm: Annotated[IntervalMm, Field(description="Central 95% of the posterior predictive distribution.")]
    percentile: Annotated[Percent, Field(description="Percentile of the measurement among reference people.")]
    diameter_at_threshold_mm: Annotated[
        tuple[DiameterAtThreshold, ...], Field(description="One for each threshold, in order.")
    ]


@slots_dataclass
class NotApplicable(NoExtraFields):
    """Why a comparator is null."""

    code: Annotated[NotApplicableCode, Field(description="For programs.")]
    field: Annotated[Literal["linear_z", "altman_z"], Field(description="The comparator.")]
    message: Annotated[str, Field(description="The same for people.")]


@slots_dataclass
class Comparators(NoExtraFields):
    """Older methods for the same comparison; null where one does not apply."""

    linear_z: Annotated[float | None, Field(description="Z-score from linear regression with a constant spread.")]
    altman_z: Annotated[float | None, Field(description="Z-score from Altman's regression, with a varying spread.")]
    diameter_per_bsa_mm_m2: Annotated[float, Field(description="Diameter per body surface area in mm/m².")]
    diameter_per_height_cm_m: Annotated[float, Field(description="Diameter per height in cm/m.")]
    area_per_height_cm2_m: Annotated[float, Field(description="Cross-sectional area per height in cm²/m.")]
    not_applicable: Annotated[tuple[NotApplicable, ...], Field(description="Why a Z-score is null.")]


@slots_dataclass
class Reason(NoExtraFields):
    """Why the score needs caution or is withheld."""

    code: Annotated[ReasonCode, Field(description="For programs.")]
    message: Annotated[str, Field(description="The same for people.")]


@slots_dataclass
class Reliability(NoExtraFields):
    """How far to trust the score, judged from who was measured and how, never from the diameter."""

    verdict: Annotated[Verdict, Field(description="With `not_reliable` the score is withheld.")]
    context_hdi_width: Annotated[float, Field(description="Width of the 95% interval at a score of 2 (W2).", ge=0)]
    context_hdi_width_percentile: Annotated[Percent, Field(description="Percentile of W2 among the training people.")]
    reasons: Annotated[tuple[Reason, ...], Field(description="Empty if the verdict is `ok`.")]


@slots_dataclass
class Advisory(NoExtraFields):
    """What a reader should know beside the score. An advisory never withholds anything."""

    code: Annotated[AdvisoryCode, Field(description="For programs.")]
    field: Annotated[str, Field(description="The field that it concerns.")]
    message: Annotated[str, Field(description="The same for people.")]


@inheritable_dataclass
class Answer(NoExtraFields):
    """All numbers of one measurement."""

    score: Annotated[Score | None, Field(description="null where it is withheld: verdict `not_reliable`.")]
    score_with_measurement_error: Annotated[
        ScoreWithMeasurementError | None, Field(description="null unless the request states the observer error.")
    ]
    reference: Annotated[Reference | None, Field(description="null where the score is withheld.")]
    comparators: Annotated[Comparators | None, Field(description="null where the score is withheld.")]
    reliability: Reliability
    advisories: Annotated[tuple[Advisory, ...], Field(description="What a reader should know beside the score.")]

    @property
    def position(self) -> Position:
        return self.score.position if self.score else "not_assessed"


@slots_dataclass
class Summary(NoExtraFields):
    """The result in words."""

    clinician: Annotated[str, Field(description="One sentence for the clinician.")]
    patient: Annotated[str, Field(description="A few plain sentences for the patient or the parents.")]


@slots_dataclass
class ModelConvention(NoExtraFields):
    """How the diameters of the training people were measured; null where it was not stated."""

    edge: Annotated[Edge | None, Field(description="Which edges of the wall were measured.")]
    phase: Annotated[Phase | None, Field(description="When in the cardiac cycle.")]
    modality: Annotated[Modality | None, Field(description="The imaging modality.")]


@slots_dataclass
class ModelProvenance(NoExtraFields):
    """The model that computed the score."""

    site: Annotated[str, Field(description="The site.")]
    version: Annotated[str, Field(description="The version.")]
    sha256: Annotated[str, Field(description="SHA-256 of the model's files.", pattern=SHA256)]
    cohort: Annotated[str, Field(description="`simulated` for every model that ships with the project.")]
    cohort_size: Annotated[int, Field(description="Number of people in the training cohort.")]
    convention: ModelConvention


@slots_dataclass
class ServiceInfo(NoExtraFields):
    """Which program answered: the same for all responses of a process."""

    version: Annotated[str, Field(description="Version of the program.")]
    commit: Annotated[str, Field(description="Its commit.")]
    backend: Annotated[Literal["numpy", "tensorflow"], Field(description="What computes the scores.")]
    device: Annotated[str, Field(description="The device that it runs on.")]


@slots_dataclass
class Provenance(NoExtraFields):
    """Where the numbers come from."""

    model: ModelProvenance
    service: ServiceInfo
    computed_at: Annotated[str, Field(description="UTC, RFC 3339.", examples=["2026-11-15T10:30:00.123Z"])]
    intended_use: Annotated[str, Field(description="What the model may be used for.")]


@inheritable_dataclass
class _Person(NoExtraFields):
    age_years: Annotated[float, Field(description="Age in years.")]
    reference_sex: Annotated[Literal["male", "female"], Field(description="The sex of the reference group.")]
    height_cm: Annotated[float, Field(description="Height in cm.")]
    weight_kg: Annotated[float, Field(description="Weight in kg.")]


@inheritable_dataclass
class _Diameter(NoExtraFields):
    diameter_mm: Annotated[float, Field(description="The measured diameter in mm.")]


@inheritable_dataclass
class _BodySizes(NoExtraFields):
    bsa_m2: Annotated[float, Field(description="Body surface area in m².")]
    bsa_formula: Annotated[Literal["Haycock"], Field(description="The formula of the body surface area.")]
    bmi_kg_m2: Annotated[float, Field(description="Body mass index in kg/m².")]


@inheritable_dataclass
class PatientInput(_BodySizes, _Person):
    """The patient as the service read the request, with the body sizes that follow."""


@inheritable_dataclass
class MeasurementInput(_BodySizes, _Diameter, _Person):
    """The measurement as the service read the request, with the body sizes that follow."""


@inheritable_dataclass
class _Site(NoExtraFields):
    site: Annotated[str, Field(description="The site.")]


@inheritable_dataclass
class _ScoreHead(NoExtraFields):
    request_id: RequestId
    site: Annotated[str, Field(description="The site.")]
    input: MeasurementInput


@inheritable_dataclass
class _SummaryAndProvenance(NoExtraFields):
    summary: Summary
    provenance: Provenance


@inheritable_dataclass
class _ItemHead(NoExtraFields):
    index: Annotated[int, Field(description="The position of the item in the request, counted from 0.", ge=0)]
    id: Annotated[str | None, Field(description="The `id` of the item, if it has one.")]


@inheritable_dataclass
class _ItemScore(NoExtraFields):
    model: Annotated[int, Field(description="Which element of `provenance` the model is, counted from 0.", ge=0)]
    site: Annotated[str, Field(description="The site.")]
    input: MeasurementInput


@inheritable_dataclass
class BatchScore(Answer, _ItemScore, _ItemHead):
    """One item of a batch that was scored: the single response without its sentences."""


@slots_dataclass
class ItemError(NoExtraFields):
    """What is wrong with one field of an item."""

    code: Annotated[ErrorCode, Field(description="For programs.")]
    field: Annotated[str, Field(description="Dotted path of the field in the item; empty: the whole item.")]
    message: Annotated[str, Field(description="The same for people: the field, its unit and what is allowed.")]


@inheritable_dataclass
class _ItemErrors(NoExtraFields):
    errors: Annotated[tuple[ItemError, ...], Field(description="Every error of the item.")]


@inheritable_dataclass
class BatchError(_ItemErrors, _ItemHead):
    """One item of a batch that has no score."""


@inheritable_dataclass
class BatchResponse(NoExtraFields):
    """All items of a batch, in order."""

    request_id: RequestId
    succeeded: Annotated[int, Field(description="Items with a score.", ge=0)]
    failed: Annotated[int, Field(description="Items with errors.", ge=0)]
    provenance: Annotated[tuple[Provenance, ...], Field(description="One per model used.")]
    results: Annotated[tuple[BatchScore | BatchError, ...], Field(description="One per item, in order.")]


@slots_dataclass
class BatchSummary(NoExtraFields):
    """What the last line of a stream says about all lines before it."""

    succeeded: Annotated[int, Field(description="Items with a score.", ge=0)]
    failed: Annotated[int, Field(description="Items with errors.", ge=0)]
    request_id: RequestId
    provenance: Annotated[tuple[Provenance, ...], Field(description="One per model used.")]


@slots_dataclass
class BatchEnd(NoExtraFields):
    """The last line of a stream."""

    summary: BatchSummary


@inheritable_dataclass
class StudyResult(_SummaryAndProvenance, Answer, _Site):
    """One measurement of a study."""


@inheritable_dataclass
class ScoreResponse(_SummaryAndProvenance, Answer, _ScoreHead):
    """One measurement."""


@inheritable_dataclass
class StudyResponse(NoExtraFields):
    """All measurements of one study."""

    request_id: RequestId
    input: PatientInput
    results: Annotated[tuple[StudyResult, ...], Field(description="One per measurement, in order.")]
