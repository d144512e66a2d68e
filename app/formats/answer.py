"""The answer as it leaves: the contract's fields in their order, nine digits, nothing that cannot be true.

The domain's answer carries the names and the order of the wire, so `body` only has to round it. Every number is
looked at once more on its way out: one that is not finite, an interval upside down or a probability outside 0..1
is a defect, never an answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import msgspec

from app.domain.card import ModelCard, ModelRef
from app.domain.patient import Patient
from app.domain.score import (
    HDI,
    NOT_SENT,
    Advisory,
    Answer,
    ComparatorScores,
    Exceedance,
    Interval,
    Reason,
    Reference,
    Reliability,
    Score,
    ScoreWithMeasurementError,
    ThresholdDiameter,
)
from app.errors import UnverifiedResult
from app.formats.digits import significant
from app.formats.summaries import Summary, intended_use

Json = dict[str, Any]
SIMULATED = "simulated"
BODY = tuple(field.name for field in fields(Answer))

# What a number of this name can be at most; at least it is 0.
LARGEST = {
    "probability": 1.0,
    "probability_below": 1.0,
    "percentile": 100.0,
    "context_hdi_width_percentile": 100.0,
}

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Result:
    """One judged reading with all that is told of it."""

    site: str
    answer: Answer
    summary: Summary
    provenance: Json


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """Which program answered: the same for all answers of a process."""

    version: str
    commit: str
    backend: str
    device: str


def single(request_id: str, patient: Patient, diameter_mm: float, result: Result) -> Json:
    return {
        "request_id": request_id,
        "site": result.site,
        "input": given(patient, diameter_mm),
        **_told(result),
    }


def study(request_id: str, patient: Patient, results: Sequence[Result]) -> Json:
    told = [{"site": result.site, **_told(result)} for result in results]
    return {"request_id": request_id, "input": given(patient), "results": told}


def _told(result: Result) -> Json:
    summary = {"clinician": result.summary.clinician, "patient": result.summary.patient}
    return {**body(result.answer), "summary": summary, "provenance": result.provenance}


def given(patient: Patient, diameter_mm: float | None = None) -> Json:
    """What was judged, as it was understood, with the body sizes that follow."""
    measured = {} if diameter_mm is None else {"diameter_mm": significant(diameter_mm)}
    return {
        "age_years": significant(patient.age_years),
        "reference_sex": patient.sex.value,
        "height_cm": significant(patient.height_cm),
        "weight_kg": significant(patient.weight_kg),
        **measured,
        "bsa_m2": significant(patient.bsa_m2),
        "bsa_formula": "Haycock",
        "bmi_kg_m2": significant(patient.bmi_kg_m2),
    }


def body(answer: Answer) -> Json:
    """From `score` to `advisories`: what single, study and batch answers share."""
    told: Json = _rounded(answer)
    return told


def provenance(model: Json, service: Json, computed_at: datetime) -> Json:
    """`model` and `service` are made once, by the two functions below; only the moment differs."""
    moment = computed_at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    use = intended_use(simulated=model["cohort"] == SIMULATED)
    return {"model": model, "service": service, "computed_at": moment, "intended_use": use}


def model_provenance(ref: ModelRef, card: ModelCard) -> Json:
    cohort = {"cohort": card.cohort.name, "cohort_size": card.cohort.size}
    return {**asdict(ref), **cohort, "convention": asdict(card.convention)}


def service_provenance(stamp: ServiceInfo) -> Json:
    return asdict(stamp)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How values of one class leave: found once for each class, because an answer has a dozen of them."""

    names: tuple[str, ...]
    values: Callable[[object], tuple[object, ...]]  # all fields at once
    bounded: tuple[tuple[str, float], ...]  # names with their largest value
    is_interval: bool

    @classmethod
    def of(cls, kind: type[Any]) -> "_Shape":
        names = tuple(field.name for field in fields(kind) if field.metadata != NOT_SENT)
        bounded = tuple((name, largest) for name, largest in LARGEST.items() if name in names)
        return cls(names, attrgetter(*names), bounded, "low" in names)


_SHAPES = {
    kind: _Shape.of(kind)
    for kind in (
        *(Answer, Score, ScoreWithMeasurementError, HDI, Exceedance, Reference, Interval, ThresholdDiameter),
        *(ComparatorScores, Reliability, Reason, Advisory),
    )
}


def _rounded(value: Any) -> Any:
    """A part of an answer as plain values, rounded, and refused where it cannot be true."""
    shape = _SHAPES.get(type(value))
    if shape is None:  # a word, nothing, or several parts
        return [_rounded(item) for item in value] if type(value) is tuple else value
    told = {
        name: significant(item) if type(item) is float else _rounded(item)
        for name, item in zip(shape.names, shape.values(value), strict=True)
    }
    if shape.bounded or shape.is_interval:
        _refuse_impossible(told, shape)
    return told


def _refuse_impossible(told: Json, shape: _Shape) -> None:
    """Judged after rounding, where a probability of 1 + 1e-16 is 1."""
    for name, largest in shape.bounded:
        if not 0.0 <= told[name] <= largest:
            raise UnverifiedResult(f"A {name} of the answer lies outside 0..{largest:g}.")
    if shape.is_interval and not told["low"] <= told.get("median", told["low"]) <= told["high"]:
        raise UnverifiedResult("An interval of the answer is upside down.")
