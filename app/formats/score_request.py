"""The request for the score of one reading: the contract's fields, every fault at once.

No refusal here depends on a model: whether site and version exist is for the service to say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast, get_args

from app.domain.convention import Convention, Edge, Modality, Phase
from app.domain.limits import AGE, HDI_PROBABILITY, MEASUREMENT_SD, SUBJECT, THRESHOLD, THRESHOLDS, Limit
from app.domain.patient import Patient, Sex
from app.domain.query import ScoreQuery
from app.errors import FieldError, InvalidInput
from app.formats.fields import ABSENT, Fields
from app.formats.slips import read_body, read_diameter

CURRENT = "current"
NOT_STATED = Convention()
DEFAULT_THRESHOLDS = (2.0,)
MODEL_VERSION = Limit("model_version", "characters", 1, 64)

PATIENT_FIELDS = dict.fromkeys(("age_years", "sex", "height_cm", "weight_kg"))
READING_FIELDS = dict.fromkeys(("diameter_mm", "measurement_sd_mm", "convention", "model_version"))
OPTION_FIELDS = dict.fromkeys(("thresholds", "hdi_probability", "include_unreliable", "subject"))
SCORE_FIELDS = PATIENT_FIELDS | READING_FIELDS | OPTION_FIELDS

SEXES = tuple(Sex)
CHOOSE_SEX = '"male" or "female"; choose the sex of the reference group to compare with.'
CONVENTION_CHOICES: dict[str, tuple[str, ...]] = {
    "edge": get_args(Edge),
    "phase": get_args(Phase),
    "modality": get_args(Modality),
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the measurements of a study share beside the patient."""

    thresholds: tuple[float, ...]
    hdi_probability: float
    include_unreliable: bool
    subject: str | None


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """One reading as it is to be judged, by which version of which model, and for whom the caller keeps it."""

    site: str
    query: ScoreQuery
    model_version: str  # exact, or CURRENT
    subject: str | None  # the caller's own reference; stored only as a keyed hash


def parse(site: str, body: object) -> ScoreRequest:
    """The request, or InvalidInput with every fault of the body. `site` comes from the path."""
    faults: list[FieldError] = []
    fields = read_object(body, SCORE_FIELDS, faults)
    patient = read_patient(fields)
    request = read_reading(fields, site, patient, read_options(fields))
    if faults:
        raise InvalidInput(faults)
    return request


def read_object(body: object, known: Mapping[str, object], faults: list[FieldError], hint: str = "") -> Fields:
    """The body as fields. One that is no object has one fault, not one for each field that it lacks."""
    fields = Fields(body, known, faults, hint=hint)
    if not isinstance(body, dict):
        raise InvalidInput(faults)
    return fields


def read_patient(fields: Fields) -> Patient:
    age = fields.number(AGE)
    sex = fields.choice("sex", SEXES, CHOOSE_SEX, required=True)
    height, weight = read_body(fields)
    return Patient(age, Sex.FEMALE if sex == Sex.FEMALE else Sex.MALE, height, weight)


def read_options(fields: Fields) -> Options:
    thresholds = fields.numbers(THRESHOLDS, THRESHOLD, DEFAULT_THRESHOLDS)
    probability = fields.number(HDI_PROBABILITY)
    return Options(thresholds, probability, fields.flag("include_unreliable"), fields.text(SUBJECT) or None)


def read_reading(fields: Fields, site: str, patient: Patient, options: Options) -> ScoreRequest:
    query = ScoreQuery(
        patient=patient,
        diameter_mm=read_diameter(fields, patient.age_years),
        thresholds=options.thresholds,
        hdi_probability=options.hdi_probability,
        measurement_sd_mm=fields.number(MEASUREMENT_SD),
        convention=read_convention(fields),
        include_unreliable=options.include_unreliable,
    )
    return ScoreRequest(site, query, fields.text(MODEL_VERSION) or CURRENT, options.subject)


def read_convention(fields: Fields) -> Convention:
    value = fields.value("convention")
    if value is ABSENT:
        return NOT_STATED
    parts = Fields(value, CONVENTION_CHOICES, fields.faults, fields.at("convention"))
    edge, phase, modality = [parts.choice(name, choices) for name, choices in CONVENTION_CHOICES.items()]
    return Convention(cast("Edge | None", edge), cast("Phase | None", phase), cast("Modality | None", modality))
