"""A request as its record keeps it, and back: what was asked, in clear, but for the patient reference."""

from typing import Any

from app.audit.subject import SubjectHasher
from app.formats.score_request import ScoreRequest, parse

Json = dict[str, Any]
SUBJECT = "subject"


def recorded(request: ScoreRequest, hasher: SubjectHasher) -> Json:
    """The fields of the request with their defaults filled in. The reference is there as a keyed hash only."""
    asked, patient = request.query, request.query.patient
    convention = asked.convention
    stated = {"edge": convention.edge, "phase": convention.phase, "modality": convention.modality}
    return {
        "age_years": patient.age_years,
        "sex": patient.sex.value,
        "height_cm": patient.height_cm,
        "weight_kg": patient.weight_kg,
        "diameter_mm": asked.diameter_mm,
        "thresholds": asked.thresholds,
        "hdi_probability": asked.hdi_probability,
        "measurement_sd_mm": asked.measurement_sd_mm,
        "convention": {name: part for name, part in stated.items() if part is not None},
        "model_version": request.model_version,
        "include_unreliable": asked.include_unreliable,
        SUBJECT: hasher.hash(request.subject) if request.subject else None,
    }


def asked_again(site: str, record: Json) -> ScoreRequest:
    return parse(site, {name: value for name, value in record.items() if name != SUBJECT})
