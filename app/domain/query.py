"""Measurements of patients: how the diameters were measured, and which numbers the answers should hold.

`ScoreQuery` is one of them, `MeasurementColumns` are all that are computed together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from app.domain.patient import Patient, Sex, bmi_kg_m2, haycock_bsa_m2

Array = NDArray[np.float64]

Edge = Literal["leading", "inner", "outer"]
Phase = Literal["end-diastole", "mid-systole"]
Modality = Literal["TTE", "CT", "MR"]


@dataclass(frozen=True, slots=True)
class Convention:
    """How a diameter was measured; None: not stated.

    Inner-edge diameters are about 3 mm smaller than leading-edge ones.
    """

    edge: Edge | None = None
    phase: Phase | None = None
    modality: Modality | None = None

    def differences(self, other: "Convention") -> tuple[str, ...]:
        """The names of the parts that both state and state differently."""
        if self == other:
            return ()
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in PARTS)
        return tuple(name for name, mine, theirs in pairs if mine and theirs and mine != theirs)

    @property
    def not_stated(self) -> tuple[str, ...]:
        return tuple([name for name in PARTS if getattr(self, name) is None])


PARTS = tuple(part.name for part in fields(Convention))
NOT_STATED = Convention()
_CHOICES = ((None, *get_args(choices)) for choices in (Edge, Phase, Modality))
CONVENTIONS = tuple(Convention(*parts) for parts in product(*_CHOICES))
CONVENTION_INDEX = {convention: index for index, convention in enumerate(CONVENTIONS)}
DEFAULT_THRESHOLDS = (2.0,)
DEFAULT_HDI_PROBABILITY = 0.95


@dataclass(frozen=True, slots=True)
class ScoreQuery:
    patient: Patient
    diameter_mm: float
    thresholds: tuple[float, ...] = DEFAULT_THRESHOLDS
    hdi_probability: float = DEFAULT_HDI_PROBABILITY
    measurement_sd_mm: float = 0.0  # observer error of this measurement; 0: not stated
    convention: Convention = NOT_STATED
    include_unreliable: bool = False  # give the numbers even where the verdict is `not_reliable`

    @property
    def error_variance(self) -> float:
        return self.measurement_sd_mm * self.measurement_sd_mm


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementColumns:
    """N measurements with the same thresholds and the same probability of the interval. Every array is [N]."""

    age_years: Array
    male: NDArray[np.bool_]
    height_cm: Array
    weight_kg: Array
    diameter_mm: Array
    measurement_sd_mm: Array  # 0: not stated
    convention: NDArray[np.intp]  # index into CONVENTIONS
    include_unreliable: NDArray[np.bool_]
    thresholds: tuple[float, ...]
    hdi_probability: float
    bsa_m2: Array = field(init=False)
    bmi_kg_m2: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bsa_m2", haycock_bsa_m2(self.height_cm, self.weight_kg))
        object.__setattr__(self, "bmi_kg_m2", bmi_kg_m2(self.height_cm, self.weight_kg))

    def __len__(self) -> int:
        return self.age_years.size

    @property
    def states_error(self) -> NDArray[np.bool_]:
        return self.measurement_sd_mm > 0.0

    @property
    def error_variance(self) -> Array | None:
        """None: no measurement states its error."""
        return self.measurement_sd_mm * self.measurement_sd_mm if self.measurement_sd_mm.any() else None

    @classmethod
    def of(cls, queries: Sequence[ScoreQuery]) -> "MeasurementColumns":
        """All queries have the thresholds and the probability of the first, of which there must be one."""
        rows = [
            (
                query.patient.age_years,
                query.patient.sex is Sex.MALE,
                query.patient.height_cm,
                query.patient.weight_kg,
                query.diameter_mm,
                query.measurement_sd_mm,
                CONVENTION_INDEX[query.convention],
                query.include_unreliable,
            )
            for query in queries
        ]
        age, male, height, weight, diameter, sd, convention, include = np.ascontiguousarray(
            np.array(rows, dtype=np.float64).T
        )
        return cls(
            age,
            male > 0.0,
            height,
            weight,
            diameter,
            sd,
            convention.astype(np.intp),
            include > 0.0,
            queries[0].thresholds,
            queries[0].hdi_probability,
        )

    @classmethod
    def of_people(
        cls, age_years: Array, male: Array, height_cm: Array, weight_kg: Array, diameter_mm: Array
    ) -> "MeasurementColumns":
        """With the default options; `male` is 1 or 0."""
        return cls(
            age_years,
            male > 0.0,
            height_cm,
            weight_kg,
            diameter_mm,
            np.zeros_like(age_years),
            np.full(age_years.shape, CONVENTION_INDEX[NOT_STATED]),
            np.zeros(age_years.shape, dtype=bool),
            DEFAULT_THRESHOLDS,
            DEFAULT_HDI_PROBABILITY,
        )


class OneMeasurement(NamedTuple):
    """One measurement with floats."""

    age_years: float
    male: bool
    height_cm: float
    weight_kg: float
    diameter_mm: float
    measurement_sd_mm: float
    convention: int
    include_unreliable: bool
    bsa_m2: float
    bmi_kg_m2: float

    @property
    def states_error(self) -> bool:
        return self.measurement_sd_mm > 0.0

    @property
    def error_variance(self) -> float:
        return self.measurement_sd_mm * self.measurement_sd_mm

    @classmethod
    def of(cls, query: ScoreQuery) -> "OneMeasurement":
        patient = query.patient
        height, weight = patient.height_cm, patient.weight_kg
        return cls(
            patient.age_years,
            patient.sex is Sex.MALE,
            height,
            weight,
            query.diameter_mm,
            query.measurement_sd_mm,
            CONVENTION_INDEX[query.convention],
            query.include_unreliable,
            haycock_bsa_m2(height, weight),
            bmi_kg_m2(height, weight),
        )
