"""The bodies of requests. Those who wrote `formats/score_request.py` keep the rules; here they are told."""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.domain import limits
from app.domain.convention import Edge, Modality, Phase
from app.schemas.base import PLAIN_TEXT, Described, quantity

Number = float


class StatedConvention(Described):
    """How the diameter was taken. Leave out what is not known."""

    edge: Edge = Field(default_factory=lambda: "leading", description="Which edges of the wall were measured.")
    phase: Phase = Field(default_factory=lambda: "end-diastole", description="When in the heart's cycle.")
    modality: Modality = Field(default_factory=lambda: "TTE", description="By which imaging.")


class PatientFields(Described):
    age_years: Annotated[Number, quantity("Age, fractions allowed", limits.AGE)]
    sex: Literal["male", "female"] = Field(description="The sex of the reference group to compare with.")
    height_cm: Annotated[Number, quantity("Height", limits.HEIGHT)]
    weight_kg: Annotated[Number, quantity("Weight; body mass index must be 8 to 100 kg/m²", limits.WEIGHT)]


class ReadingFields(Described):
    diameter_mm: Annotated[Number, quantity("The diameter; from age 5 on at least 10", limits.DIAMETER)]
    measurement_sd_mm: Annotated[
        Number, quantity("Observer error of this reading; adds `score_with_measurement_error`", limits.MEASUREMENT_SD)
    ] = 0.0
    convention: StatedConvention = Field(default_factory=StatedConvention, description="How the diameter was taken.")
    model_version: str = Field(
        "current", description="An exact version.", min_length=1, max_length=64, pattern=PLAIN_TEXT
    )


class OptionFields(Described):
    thresholds: list[Annotated[Number, quantity("A score", limits.THRESHOLD)]] = Field(
        [2.0], description="Scores to give the probability of exceeding for.", min_length=1, max_length=8
    )
    hdi_probability: Annotated[Number, quantity("Held by the interval", limits.HDI_PROBABILITY)] = 0.95
    include_unreliable: bool = Field(False, description="Give the numbers even where the verdict is `not_reliable`.")
    subject: str = Field(
        default_factory=str,
        description="Your own opaque patient reference; stored only as a keyed hash. No control characters.",
        min_length=1,
        max_length=128,
        pattern=PLAIN_TEXT,
    )


class ScoreRequest(OptionFields, ReadingFields, PatientFields):
    """One reading of one patient. Unknown fields are refused."""


class Measurement(ReadingFields):
    site: str = Field(
        description="Where the diameter was measured; each site once.", min_length=1, max_length=64, pattern=PLAIN_TEXT
    )


class StudyRequest(OptionFields, PatientFields):
    """All sites of one study. One fault refuses the whole study."""

    measurements: list[Measurement] = Field(min_length=1, max_length=8)


class ActivateRequest(Described):
    version: str = Field(
        description="The version to make current.", min_length=1, max_length=64, pattern=PLAIN_TEXT, examples=["1.0.0"]
    )


MAN: dict[str, Any] = {"age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84}
STATED = {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}

SCORE_EXAMPLES: dict[str, Any] = {
    "one reading": {"value": {**MAN, "diameter_mm": 41, "convention": STATED}},
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
