"""The bodies of requests: the one definition of every field that a caller may send.

Types are strict: `true` and `"30"` are not numbers, whole numbers are. The rules that concern two fields (body mass
index, smallest diameter for the age) are validators of the second field, so that they run even where a third one is
wrong. `app.schemas.validation` turns what pydantic finds into messages; `app.schemas.fields` reads these models to
derive table columns, command-line options and `GET /v1/limits` from them.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    SkipValidation,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from app.domain import limits
from app.domain.limits import Limit, diameter_limit
from app.domain.patient import Patient, Sex, bmi_kg_m2
from app.domain.query import Convention, Edge, Modality, Phase, ScoreQuery
from app.schemas.base import PLAIN_TEXT, Schema

CURRENT = "current"
UNIT = "x-unit"  # in the JSON Schema of a field
MAX_KEYS = 20  # more than any object of a request has; further ones are unknown


def quantity(description: str, unit: str, low: float, high: float) -> Any:
    """A number with a unit and a range."""
    return Field(description=description, ge=low, le=high, json_schema_extra={UNIT: unit})


def measured_quantity(description: str, limit: Limit) -> Any:
    return quantity(description, limit.unit, limit.low, limit.high)


def _not_stated() -> Any:
    """None, which cannot be sent: `null` is not a way to leave a field out."""
    return None


# Adding zero turns -0.0 into 0.0, so that equal requests are recorded as equal bytes.
NO_NEGATIVE_ZERO = AfterValidator(lambda value: value + 0.0)

AgeYears = Annotated[float, measured_quantity("Age in years; fractions are allowed.", limits.AGE), NO_NEGATIVE_ZERO]
HeightCm = Annotated[float, measured_quantity("Height in cm.", limits.HEIGHT)]
WeightKg = Annotated[
    float,
    measured_quantity(
        f"Weight in kg; the body mass index must be {limits.BMI.low:g} to {limits.BMI.high:g} {limits.BMI.unit}.",
        limits.WEIGHT,
    ),
]
DiameterMm = Annotated[
    float,
    measured_quantity(
        f"Diameter in mm; at least {limits.DIAMETER_FROM_SCHOOL_AGE.low:g} from age {limits.SCHOOL_AGE_YEARS:g} on.",
        limits.DIAMETER,
    ),
]
MeasurementSdMm = Annotated[
    float,
    quantity(
        "Observer error of this measurement (standard deviation) in mm; adds `score_with_measurement_error`.",
        "mm",
        0.0,
        5.0,
    ),
    NO_NEGATIVE_ZERO,
]
Threshold = Annotated[float, quantity("A normalcy score.", "NS", -10.0, 10.0), NO_NEGATIVE_ZERO]
HdiProbability = Annotated[float, quantity("Probability contained in the interval.", "probability", 0.5, 0.99)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=PLAIN_TEXT)]


class Request(Schema):
    model_config = ConfigDict(strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_most_unknown_fields(cls, value: Any) -> Any:
        """Bounds the cost of a hostile body: one of many unknown fields is enough to reject it."""
        if not isinstance(value, dict) or len(value) <= MAX_KEYS:
            return value
        known = cls.model_fields
        unknown = next((name for name in value if name not in known), None)
        return {name: value[name] for name in (*known, unknown) if name in value}


class StatedConvention(Request):
    """How the diameter was measured. Leave out what is not known."""

    edge: Edge = Field(default_factory=_not_stated, description="Which edges of the wall were measured.")
    phase: Phase = Field(default_factory=_not_stated, description="When in the cardiac cycle.")
    modality: Modality = Field(default_factory=_not_stated, description="The imaging modality.")

    def to_convention(self) -> Convention:
        return Convention(self.edge, self.phase, self.modality)


NO_CONVENTION = StatedConvention()


class AgeField(Request):
    age_years: AgeYears


class SexField(Request):
    sex: Literal["male", "female"] = Field(description="The sex of the reference group to compare with.")


class BodyFields(Request):
    height_cm: HeightCm
    weight_kg: WeightKg

    @field_validator("weight_kg")
    @classmethod
    def _check_bmi(cls, weight_kg: float, info: ValidationInfo) -> float:
        height_cm = info.data.get("height_cm")
        if height_cm is not None and not limits.BMI.holds(bmi_kg_m2(height_cm, weight_kg)):
            raise PydanticCustomError("implausible_bmi", "height and weight give an implausible body mass index")
        return weight_kg


class PatientFields(BodyFields, SexField, AgeField):
    def to_patient(self) -> Patient:
        return Patient(self.age_years, Sex(self.sex), self.height_cm, self.weight_kg)


class DiameterFields(Request):
    diameter_mm: DiameterMm
    measurement_sd_mm: MeasurementSdMm = 0.0

    @field_validator("diameter_mm")
    @classmethod
    def _check_diameter_for_age(cls, diameter_mm: float, info: ValidationInfo) -> float:
        """The age is in the same object, or, of a measurement in a study, in the context."""
        age_years = (info.context or info.data).get("age_years")
        if age_years is not None and not diameter_limit(age_years).holds(diameter_mm):
            raise PydanticCustomError("out_of_range", "the diameter is too small for the age")
        return diameter_mm


class MeasurementFields(DiameterFields):
    convention: StatedConvention = Field(
        default_factory=lambda: NO_CONVENTION, description="How the diameter was measured."
    )
    model_version: Name = Field(CURRENT, description="An exact version.")


class OptionFields(Request):
    thresholds: list[Threshold] = Field(
        default_factory=lambda: [2.0],  # pydantic would copy a default list deeply for every request
        description="Scores for which the probability of exceeding them is given.",
        min_length=1,
        max_length=8,
        json_schema_extra={UNIT: "numbers", "default": [2.0]},
    )
    hdi_probability: HdiProbability = 0.95
    include_unreliable: bool = Field(False, description="Give the numbers even where the verdict is `not_reliable`.")
    subject: str = Field(
        default_factory=str,
        description="Your own opaque patient reference; stored only as a keyed hash.",
        min_length=1,
        max_length=128,
        pattern=PLAIN_TEXT,
        json_schema_extra={UNIT: "characters"},
    )


class ScoreRequest(OptionFields, MeasurementFields, PatientFields):
    """One measurement of one patient. Unknown fields are rejected."""

    def to_query(self) -> ScoreQuery:
        return ScoreQuery(
            patient=self.to_patient(),
            diameter_mm=self.diameter_mm,
            thresholds=tuple(self.thresholds),
            hdi_probability=self.hdi_probability,
            measurement_sd_mm=self.measurement_sd_mm,
            convention=self.convention.to_convention(),
            include_unreliable=self.include_unreliable,
        )

    def for_site(self, site: str) -> "SiteRequest":
        return SiteRequest(site, self, self.to_query())


class BatchItem(ScoreRequest):
    """One measurement of a batch, or one row of a file: the single request, and where it belongs."""

    site: Name = Field(description="Where the diameter was measured: the site of a published model.")
    id: str = Field(
        default_factory=_not_stated,
        description="Your own identifier of the item; the response repeats it.",
        min_length=1,
        max_length=128,
        pattern=PLAIN_TEXT,
        json_schema_extra={UNIT: "characters"},
    )


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """A validated request, the site that it concerns, and the query that follows from it."""

    site: str
    body: ScoreRequest
    query: ScoreQuery

    @property
    def model_version(self) -> str:
        """An exact version, or CURRENT."""
        return self.body.model_version

    @property
    def subject(self) -> str:
        """The caller's own reference, or an empty text. To be stored only as a keyed hash."""
        return self.body.subject


class BatchRequest(Request):
    """Items of a batch. One bad item does not affect the others, so each is validated by itself."""

    items: list[SkipValidation[BatchItem]] = Field(
        description="Single requests, each with `site` and an optional `id`.",
        min_length=0,
        max_length=10_000,
        json_schema_extra={UNIT: "items"},
    )


class SiteField(Request):
    site: Name = Field(description="Where the diameter was measured; each site once.")


class Measurement(MeasurementFields, SiteField):
    """One measurement of a study."""


def _with_age(value: object, _: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Measurement:
    """Validate a measurement of a study for the age of its patient."""
    return Measurement.model_validate(value, context={"age_years": info.data.get("age_years")})


class StudyRequest(OptionFields, PatientFields):
    """All sites of one study. One error rejects the whole study."""

    measurements: list[Annotated[Measurement, WrapValidator(_with_age)]] = Field(
        description="One for each site.", min_length=1, max_length=8, json_schema_extra={UNIT: "measurements"}
    )

    @field_validator("measurements")
    @classmethod
    def _check_each_site_once(cls, measurements: list[Measurement]) -> list[Measurement]:
        if len({measurement.site for measurement in measurements}) < len(measurements):
            raise PydanticCustomError("duplicate_site", "a site is measured twice")
        return measurements

    def site_requests(self) -> list[SiteRequest]:
        """Each measurement as the request for it alone would be."""
        shared = {name: getattr(self, name) for name in SHARED_FIELDS}
        return [
            ScoreRequest.model_construct(
                **shared, **{name: getattr(measurement, name) for name in MeasurementFields.model_fields}
            ).for_site(measurement.site)
            for measurement in self.measurements
        ]


SHARED_FIELDS = tuple(name for name in StudyRequest.model_fields if name in ScoreRequest.model_fields)


class Visit(DiameterFields, BodyFields, AgeField):
    """A further measurement of the same patient at another age."""


class ChartRequest(OptionFields, MeasurementFields, PatientFields):
    """A patient to draw among reference people, with a measurement, with several, or without any."""

    diameter_mm: DiameterMm = Field(default_factory=_not_stated)
    visits: list[Visit] = Field(
        default_factory=list,
        description="Further measurements of the same patient, scored by the same version of the model.",
        min_length=1,
        max_length=10,
        json_schema_extra={UNIT: "visits"},
    )

    @property
    def has_diameter(self) -> bool:
        return "diameter_mm" in self.model_fields_set

    def site_request(self, site: str) -> SiteRequest | None:
        """The request that scores the patient's own diameter; None without one."""
        return self._score_request({}).for_site(site) if self.has_diameter else None

    def visit_requests(self, site: str) -> list[SiteRequest]:
        """The request that scores each visit alone."""
        return [self._score_request(dict(visit)).for_site(site) for visit in self.visits]

    def _score_request(self, visit: dict[str, Any]) -> ScoreRequest:
        own = {name: getattr(self, name) for name in ScoreRequest.model_fields}
        return ScoreRequest.model_construct(**own | visit)


class ActivateRequest(Request):
    """Which version to activate."""

    version: Name = Field(description="The version to make current.", examples=["1.0.0"])


MAN: dict[str, Any] = {"age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84}
STATED: dict[str, Any] = {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}
SCORE_EXAMPLES: dict[str, Any] = {
    "one measurement": {"value": {**MAN, "diameter_mm": 41, "convention": STATED}},
    "two thresholds, with observer error": {
        "value": {**MAN, "diameter_mm": 41, "thresholds": [2.0, 3.0], "measurement_sd_mm": 1.5, "convention": STATED}
    },
    "a newborn: no score is given": {
        "value": {"age_years": 0.02, "sex": "female", "height_cm": 51, "weight_kg": 3.5, "diameter_mm": 9.5}
    },
}
STUDY_EXAMPLES: dict[str, Any] = {
    "both sites": {
        "value": {
            **MAN,
            "measurements": [
                {"site": "SoV", "diameter_mm": 41, "convention": STATED},
                {"site": "AA", "diameter_mm": 38.5, "convention": STATED},
            ],
        }
    }
}
BATCH_EXAMPLES: dict[str, Any] = {
    "two items": {
        "value": {
            "items": [
                {"id": "a", "site": "SoV", **MAN, "diameter_mm": 41, "convention": STATED},
                {"id": "b", "site": "AA", **MAN, "diameter_mm": 38.5, "convention": STATED},
            ]
        }
    }
}
CHART_EXAMPLES: dict[str, Any] = {
    "one measurement": {"value": {**MAN, "diameter_mm": 41, "convention": STATED}},
    "no measurement: the curves alone": {"value": MAN},
    "several visits": {
        "value": {
            **MAN,
            "diameter_mm": 41,
            "visits": [
                {"age_years": 49.2, "height_cm": 177, "weight_kg": 80, "diameter_mm": 38.5},
                {"age_years": 52.1, "height_cm": 176, "weight_kg": 82, "diameter_mm": 40},
            ],
        }
    },
}
