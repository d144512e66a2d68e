"""The response as it leaves: the contract's fields in their order, nine digits, nothing that cannot be true.

The numbers of an answer were rounded and checked where they were computed (`app.inference.answer_columns`).
"""

from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from app.clock import timestamp
from app.domain.card import ModelCard, ModelRef
from app.domain.patient import Patient
from app.formats.rounding import significant
from app.formats.summaries import intended_use
from app.schemas.answers import (
    Advisory,
    Answer,
    Comparators,
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

encode = msgspec.json.Encoder().encode


class Result(NamedTuple):
    """One scored measurement with all that the response says about it."""

    site: str
    input: MeasurementInput
    answer: Answer
    summary: Summary
    provenance: Provenance


def score_response(request_id: str, result: Result) -> ScoreResponse:
    site, given, answer, summary, provenance = result
    return ScoreResponse(request_id, site, given, *parts(answer), summary, provenance)


def study_response(request_id: str, results: Sequence[Result]) -> StudyResponse:
    """Of at least one result; all are about the same patient."""
    patient = {field.name: getattr(results[0].input, field.name) for field in fields(PatientInput)}
    each = tuple(StudyResult(one.site, *parts(one.answer), one.summary, one.provenance) for one in results)
    return StudyResponse(request_id, PatientInput(**patient), each)


def patient_input(patient: Patient) -> dict[str, Any]:
    """The fields of PatientInput, of a patient without a scored measurement."""
    return {
        "age_years": significant(patient.age_years),
        "reference_sex": patient.sex.value,
        "height_cm": significant(patient.height_cm),
        "weight_kg": significant(patient.weight_kg),
        "bsa_m2": significant(patient.bsa_m2),
        "bsa_formula": "Haycock",
        "bmi_kg_m2": significant(patient.bmi_kg_m2),
    }


def body(answer: Answer) -> Json:
    """From `score` to `advisories` as JSON values: what single, study and batch responses share."""
    plain: Json = msgspec.json.decode(encode(answer))
    return plain


def provenance(model: ModelProvenance, service: ServiceInfo, computed_at: datetime) -> Provenance:
    return Provenance(
        model, service, timestamp(computed_at), intended_use(simulated=model.cohort.casefold() == SIMULATED)
    )


def model_provenance(ref: ModelRef, card: ModelCard) -> ModelProvenance:
    """Made once for each model."""
    convention = ModelConvention(**asdict(card.convention))
    return ModelProvenance(ref.site, ref.version, ref.sha256, card.cohort.name, card.cohort.size, convention)


def parts(
    answer: Answer,
) -> tuple[
    Score | None,
    ScoreWithMeasurementError | None,
    Reference | None,
    Comparators | None,
    Reliability,
    tuple[Advisory, ...],
]:
    """The fields of an answer, in order."""
    return (
        answer.score,
        answer.score_with_measurement_error,
        answer.reference,
        answer.comparators,
        answer.reliability,
        answer.advisories,
    )
