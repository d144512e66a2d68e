"""Responses with pictures: reference curves, density and visits of a patient, and the reliability map of a model."""

from typing import Annotated, Literal

from pydantic import Field

from app.domain.score import Verdict
from app.schemas.answers import (
    Answer,
    MeasurementInput,
    NoExtraFields,
    PatientInput,
    Provenance,
    Reliability,
    Summary,
    inheritable_dataclass,
    slots_dataclass,
)
from app.schemas.base import RequestId

Numbers = tuple[float, ...]
Ages = Annotated[Numbers, Field(description="Ages in years, rising.")]
Svg = Annotated[str, Field(description="An SVG document: no script, no style, no ids.")]


@slots_dataclass
class QuantileCurve(NoExtraFields):
    """A quantile of the posterior predictive distribution over age."""

    percent: Annotated[float, Field(description="Per cent of reference people below the curve.", ge=0, le=100)]
    diameter_mm: Annotated[Numbers, Field(description="In mm, one for each age.")]


@slots_dataclass
class ThresholdCurve(NoExtraFields):
    """The diameter whose score is the threshold, over age: quantiles of f1 + threshold · exp(f2)."""

    threshold: Annotated[float, Field(description="The threshold, a score.")]
    median: Annotated[Numbers, Field(description="Median in mm, one for each age.")]
    low: Annotated[Numbers, Field(description="2.5% quantile in mm, one for each age.")]
    high: Annotated[Numbers, Field(description="97.5% quantile in mm, one for each age.")]


@slots_dataclass
class Curves(NoExtraFields):
    """What is expected of reference people of this sex and body size, over age."""

    age_years: Annotated[
        Numbers, Field(description="The ages at which this body size is not `not_reliable`, rising, in years.")
    ]
    verdict: Annotated[tuple[Verdict, ...], Field(description="The verdict on reliability at each age.")]
    context_hdi_width: Annotated[Numbers, Field(description="W2 at each age.")]
    expected_diameter_mm: Annotated[Numbers, Field(description="Expected diameter (m1) in mm; also the median.")]
    quantiles_mm: Annotated[tuple[QuantileCurve, ...], Field(description="2.5, 16, 84 and 97.5%.")]
    diameter_at_threshold_mm: Annotated[
        tuple[ThresholdCurve, ...], Field(description="One for each threshold, in order.")
    ]


@slots_dataclass
class HdiMm(NoExtraFields):
    """The interval of the score on the axis of diameters: expected diameter + score · `aleatoric_sd_mm`."""

    low: Annotated[float, Field(description="Its lower end in mm.")]
    high: Annotated[float, Field(description="Its upper end in mm.")]


@inheritable_dataclass
class _SummaryAndHdi(NoExtraFields):
    summary: Summary
    hdi_mm: Annotated[HdiMm | None, Field(description="null where the score is withheld.")]


@inheritable_dataclass
class ChartMeasurement(_SummaryAndHdi, Answer):
    """The measurement, with the fields of the response to it alone."""


@inheritable_dataclass
class _VisitInput(NoExtraFields):
    input: MeasurementInput


@inheritable_dataclass
class VisitResult(_SummaryAndHdi, Answer, _VisitInput):
    """One visit, scored as it would be alone."""


@slots_dataclass
class Visits(NoExtraFields):
    """Several measurements of one patient by one version of the model."""

    note: Annotated[str, Field(description="How to read them: they are exploratory.")]
    items: Annotated[tuple[VisitResult, ...], Field(description="In the order of the request.")]


@slots_dataclass
class ScoreDensity(NoExtraFields):
    """The density of the score."""

    ns: Annotated[Numbers, Field(description="Scores, rising.")]
    density: Annotated[Numbers, Field(description="The density of the score at each of them.")]
    density_with_measurement_error: Annotated[
        Numbers | None, Field(description="That of the error-free diameter; null unless the error was stated.")
    ]


@slots_dataclass
class Pictures(NoExtraFields):
    """The same as pictures, laid out for the requested width."""

    reference: Svg
    density: Annotated[Svg | None, Field(description="null without a score.")]
    visits: Annotated[Svg | None, Field(description="null without visits.")]


@inheritable_dataclass
class ChartInput(PatientInput):
    """The request as the service read it, with the body sizes that follow."""

    diameter_mm: Annotated[float | None, Field(description="The measured diameter in mm; null: none was sent.")]


@inheritable_dataclass
class ChartResponse(NoExtraFields):
    """A patient among reference people of the same sex and body size."""

    request_id: RequestId
    site: Annotated[str, Field(description="The site.")]
    input: ChartInput
    reliability: Annotated[Reliability, Field(description="Of this patient, with or without a diameter.")]
    measurement: Annotated[ChartMeasurement | None, Field(description="null without `diameter_mm`.")]
    curves: Annotated[Curves | None, Field(description="null if this body size is `not_reliable` at every age.")]
    density: Annotated[ScoreDensity | None, Field(description="null without a score.")]
    visits: Annotated[Visits | None, Field(description="null without `visits`.")]
    pictures: Pictures
    provenance: Provenance


@slots_dataclass
class MapGrid(NoExtraFields):
    """The width of the interval over age and body surface area."""

    age_years: Ages
    bsa_m2: Annotated[Numbers, Field(description="Body surface areas in m² (Haycock), rising.")]
    median_bmi_kg_m2: Annotated[Numbers, Field(description="Body mass index in kg/m² that is used at each age.")]
    bmi_source: Annotated[str, Field(description="Where these medians come from.")]
    height_cm: Annotated[tuple[Numbers, ...], Field(description="Height in cm: one row for each body surface area.")]
    weight_kg: Annotated[tuple[Numbers, ...], Field(description="Weight in kg: one row for each body surface area.")]
    width: Annotated[
        tuple[Numbers, ...], Field(description="Width of the 95% interval of the score, in the same rows.")
    ]
    verdict: Annotated[tuple[tuple[Verdict, ...], ...], Field(description="The verdict on each, in the same rows.")]


@inheritable_dataclass
class ReliabilityMap(NoExtraFields):
    """How sure the model is, over age and body surface area."""

    request_id: RequestId
    site: Annotated[str, Field(description="The site.")]
    sex: Annotated[Literal["male", "female"], Field(description="The reference sex.")]
    diameter_mm: Annotated[float | None, Field(description="The diameter that is scored everywhere; null: none.")]
    quantity: Annotated[
        Literal["context_hdi_width", "hdi_width"],
        Field(description="`context_hdi_width`: W2, at a score of 2; `hdi_width`: at `diameter_mm`."),
    ]
    grid: MapGrid
    picture: Svg
    provenance: Provenance
