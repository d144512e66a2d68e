"""The request for all sites of one study: one patient, several readings. One fault refuses the whole study."""

from dataclasses import dataclass

from app.domain.limits import STUDY_MEASUREMENTS, Limit
from app.domain.patient import Patient
from app.errors import FieldError, InvalidInput
from app.formats.fields import Fields
from app.formats.score_request import (
    OPTION_FIELDS,
    PATIENT_FIELDS,
    READING_FIELDS,
    Options,
    ScoreRequest,
    read_object,
    read_options,
    read_patient,
    read_reading,
)

SITE = Limit("site", "characters", 1, 64)
STUDY_FIELDS = PATIENT_FIELDS | OPTION_FIELDS | dict.fromkeys((STUDY_MEASUREMENTS.field,))
MEASUREMENT_FIELDS = dict.fromkeys((SITE.field,)) | READING_FIELDS


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """Every measurement is a full request of its own, so that a study is scored as its single readings are."""

    patient: Patient
    measurements: tuple[ScoreRequest, ...]


def parse(body: object) -> StudyRequest:
    """The request, or InvalidInput with every fault of the body."""
    faults: list[FieldError] = []
    fields = read_object(body, STUDY_FIELDS, faults, _misplaced(body))
    patient, options = read_patient(fields), read_options(fields)
    measurements = _read_measurements(fields, patient, options)
    if faults:
        raise InvalidInput(faults)
    return StudyRequest(patient, measurements)


def _misplaced(body: object) -> str:
    """A hint where a single reading was sent as a study."""
    found = [name for name in MEASUREMENT_FIELDS if isinstance(body, dict) and name in body]
    return f" In each element of measurements belong {', '.join(MEASUREMENT_FIELDS)}." if found else ""


def _read_measurements(fields: Fields, patient: Patient, options: Options) -> tuple[ScoreRequest, ...]:
    read: list[ScoreRequest] = []
    for name, value in fields.elements(STUDY_MEASUREMENTS, "objects"):
        measurement = Fields(value, MEASUREMENT_FIELDS, fields.faults, fields.at(name))
        if not isinstance(value, dict):
            continue
        site = measurement.text(SITE, required=True)
        if site and any(site == earlier.site for earlier in read):
            measurement.refuse(
                "duplicate_site", SITE.field, f"{measurement.at(SITE.field)} was given before; give each site once."
            )
        read.append(read_reading(measurement, site, patient, options))
    return tuple(read)
