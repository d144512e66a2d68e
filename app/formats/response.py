"""The response as it leaves: the contract's fields in their order, nine digits, nothing that cannot be true.

Every number is checked once more on its way out: one that is not finite, an interval upside down or a probability
outside 0..1 is a defect, never an answer.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

import msgspec

from app.clock import timestamp
from app.domain.card import ModelCard, ModelRef
from app.domain.patient import Patient
from app.errors import UnverifiedResult
from app.formats.rounding import significant
from app.formats.summaries import intended_use
from app.schemas.answers import (
    Advisory,
    Answer,
    Comparators,
    DiameterAtThreshold,
    Exceedance,
    Hdi,
    IntervalMm,
    MeasurementInput,
    ModelConvention,
    ModelProvenance,
    PatientInput,
    Provenance,
    Reference,
    Reliability,
    Score,
    ScoreResponse,
    ScoreWithMeasurementError,
    ServiceInfo,
    StudyResponse,
    StudyResult,
    Summary,
)

Json = dict[str, Any]
SIMULATED = "simulated"
BODY = tuple(field.name for field in fields(Answer))

Parts = tuple[  # the fields of an Answer
    Score | None,
    ScoreWithMeasurementError | None,
    Reference | None,
    Comparators | None,
    Reliability,
    tuple[Advisory, ...],
]

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Result:
    """One scored measurement with all that the response says about it."""

    site: str
    answer: Answer
    summary: Summary
    provenance: Provenance


def score_response(request_id: str, patient: Patient, diameter_mm: float, result: Result) -> ScoreResponse:
    given = MeasurementInput(diameter_mm=significant(diameter_mm), **_patient_input(patient))
    return ScoreResponse(request_id, result.site, given, *_parts(result.answer), result.summary, result.provenance)


def study_response(request_id: str, patient: Patient, results: Sequence[Result]) -> StudyResponse:
    each = tuple(StudyResult(one.site, *_parts(one.answer), one.summary, one.provenance) for one in results)
    return StudyResponse(request_id, PatientInput(**_patient_input(patient)), each)


def _patient_input(patient: Patient) -> dict[str, Any]:
    return {
        "age_years": significant(patient.age_years),
        "reference_sex": patient.sex.value,
        "height_cm": significant(patient.height_cm),
        "weight_kg": significant(patient.weight_kg),
        "bsa_m2": significant(patient.bsa_m2),
        "bsa_formula": "Haycock",
        "bmi_kg_m2": significant(patient.bmi_kg_m2),
    }


def rounded_answer(answer: Answer) -> Answer:
    """The same with nine digits. Raises UnverifiedResult for what cannot be true."""
    return Answer(*_parts(answer))


def body(answer: Answer) -> Json:
    """From `score` to `advisories` as JSON values: what single, study and batch responses share."""
    plain: Json = msgspec.json.decode(encode(rounded_answer(answer)))
    return plain


def provenance(model: ModelProvenance, service: ServiceInfo, computed_at: datetime) -> Provenance:
    return Provenance(
        model, service, timestamp(computed_at), intended_use(simulated=model.cohort.casefold() == SIMULATED)
    )


def model_provenance(ref: ModelRef, card: ModelCard) -> ModelProvenance:
    """Made once for each model."""
    convention = ModelConvention(**asdict(card.convention))
    return ModelProvenance(ref.site, ref.version, ref.sha256, card.cohort.name, card.cohort.size, convention)


def _parts(answer: Answer) -> Parts:
    """The fields of an answer, rounded and checked."""
    score, with_error = answer.score, answer.score_with_measurement_error
    return (
        score and Score(significant(score.expected_ns), _hdi(score.hdi), _exceedance(score.exceedance), score.position),
        with_error and ScoreWithMeasurementError(_hdi(with_error.hdi), _exceedance(with_error.exceedance)),
        answer.reference and _reference(answer.reference),
        answer.comparators and _comparators(answer.comparators),
        _reliability(answer.reliability),
        answer.advisories,
    )


def _hdi(hdi: Hdi) -> Hdi:
    low, high = _ordered(significant(hdi.low), significant(hdi.high))
    return Hdi(_share(hdi.probability, 1.0), low, high, significant(hdi.width))


def _exceedance(exceedance: tuple[Exceedance, ...]) -> tuple[Exceedance, ...]:
    return tuple(
        [
            Exceedance(significant(one.threshold), _share(one.probability, 1.0), _share(one.probability_below, 1.0))
            for one in exceedance
        ]
    )


def _reference(reference: Reference) -> Reference:
    interval = reference.interval_mm
    return Reference(
        significant(reference.expected_diameter_mm),
        significant(reference.expected_diameter_sd_mm),
        significant(reference.aleatoric_sd_mm),
        significant(reference.aleatoric_sd_log_se),
        IntervalMm(_share(interval.probability, 1.0), *_ordered(significant(interval.low), significant(interval.high))),
        _share(reference.percentile, 100.0),
        tuple([_diameter_at_threshold(one) for one in reference.diameter_at_threshold_mm]),
    )


def _diameter_at_threshold(at: DiameterAtThreshold) -> DiameterAtThreshold:
    median, low, high = significant(at.median), significant(at.low), significant(at.high)
    _ordered(low, median)
    _ordered(median, high)
    return DiameterAtThreshold(significant(at.threshold), median, low, high)


def _comparators(found: Comparators) -> Comparators:
    return Comparators(
        None if found.linear_z is None else significant(found.linear_z),
        None if found.altman_z is None else significant(found.altman_z),
        significant(found.diameter_per_bsa_mm_m2),
        significant(found.diameter_per_height_cm_m),
        significant(found.area_per_height_cm2_m),
        found.not_applicable,
    )


def _reliability(found: Reliability) -> Reliability:
    percentile = _share(found.context_hdi_width_percentile, 100.0)
    return Reliability(found.verdict, significant(found.context_hdi_width), percentile, found.reasons)


def _share(value: float, whole: float) -> float:
    """Checked after rounding, where a probability of 1 + 1e-16 is 1."""
    rounded = significant(value)
    if not 0.0 <= rounded <= whole:
        raise UnverifiedResult(f"A probability or percentile of the answer lies outside 0..{whole:g}.")
    return rounded


def _ordered(low: float, high: float) -> tuple[float, float]:
    if low > high:
        raise UnverifiedResult("An interval of the answer is upside down.")
    return low, high
