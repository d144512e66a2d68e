"""The answer as it leaves: the contract's fields in their order, nine digits, nothing that cannot be true.

The domain's answer carries the names and the order of the wire, so `body` only has to round it. Every number is
looked at once more on its way out: one that is not finite, an interval upside down or a probability outside 0..1
is a defect, never an answer.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from app.domain.card import ModelCard, ModelRef
from app.domain.patient import Patient
from app.domain.score import Answer
from app.errors import NumbersNotTrusted
from app.formats.digits import significant
from app.formats.sentences import Summary, intended_use

Json = dict[str, Any]
SIMULATED = "simulated"
BODY = ("score", "score_with_measurement_error", "reference", "comparators", "reliability", "advisories")

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
class ServiceStamp:
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
    measured = {} if diameter_mm is None else {"diameter_mm": diameter_mm}
    told: Json = _checked(
        {
            "age_years": patient.age_years,
            "reference_sex": patient.sex.value,
            "height_cm": patient.height_cm,
            "weight_kg": patient.weight_kg,
            **measured,
            "bsa_m2": patient.bsa_m2,
            "bsa_formula": "Haycock",
            "bmi_kg_m2": patient.bmi_kg_m2,
        }
    )
    return told


def body(answer: Answer) -> Json:
    """From `score` to `advisories`: what single, study and batch answers share."""
    told: Json = _checked({name: msgspec.to_builtins(getattr(answer, name)) for name in BODY})
    return told


def provenance(model: Json, service: Json, computed_at: datetime) -> Json:
    """`model` and `service` are made once, by the two functions below; only the moment differs."""
    moment = computed_at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    use = intended_use(simulated=model["cohort"] == SIMULATED)
    return {"model": model, "service": service, "computed_at": moment, "intended_use": use}


def model_provenance(ref: ModelRef, card: ModelCard) -> Json:
    cohort = {"cohort": card.cohort.name, "cohort_size": card.cohort.size}
    return {**asdict(ref), **cohort, "convention": asdict(card.convention)}


def service_provenance(stamp: ServiceStamp) -> Json:
    return asdict(stamp)


def _checked(value: Any) -> Any:
    """Rounded, and refused where it cannot be true."""
    kind = type(value)
    if kind is float:
        if value - value != 0.0:  # infinite, or not a number
            raise NumbersNotTrusted("A number of the answer is not finite.")
        return significant(value)
    if kind is dict:
        told = {name: _checked(item) for name, item in value.items()}
        _refuse_impossible(told)
        return told
    return [_checked(item) for item in value] if kind is tuple or kind is list else value


def _refuse_impossible(told: Json) -> None:
    """Judged after rounding, where a probability of 1 + 1e-16 is 1."""
    for name, largest in LARGEST.items():
        if name in told and not 0.0 <= told[name] <= largest:
            raise NumbersNotTrusted(f"A {name} of the answer lies outside 0..{largest:g}.")
    if "low" in told and not told["low"] <= told.get("median", told["low"]) <= told["high"]:
        raise NumbersNotTrusted("An interval of the answer is upside down.")
