"""Golden cases: patients whose numbers a published version must reproduce, in every process and on every backend.

The moments come from GPflow at publication, the outputs from the slow, safe way of the solver.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.patient import Patient, Sex

GOLDEN_FORMAT = 1

# From far below to far above: the middle, both sides of the limits of position, and the flat tails.
SCORES = (-6.5, -3.0, -2.0, -1.0, -0.3, 0.4, 1.2, 1.8, 2.2, 3.0, 4.5, 8.0)

# Where no model was trained: the numbers are never shown there unasked, but they must still be the same.
OUTSIDE = (
    Patient(0.0, Sex.FEMALE, 50.0, 3.4),
    Patient(112.0, Sex.MALE, 160.0, 55.0),
    Patient(40.0, Sex.FEMALE, 165.0, 150.0),
    Patient(30.0, Sex.MALE, 235.0, 180.0),
)

_SPREAD = 14  # ordinary training contexts, half of each sex


@dataclass(frozen=True, slots=True)
class GoldenInput:
    """The diameter follows from the score once the model is known: m1 + score · exp(m2), to a tenth of a mm."""

    patient: Patient
    score: float


@dataclass(frozen=True, slots=True)
class GoldenMoments:
    m1: float  # mm
    v1: float  # mm²
    m2: float  # log mm
    v2: float


@dataclass(frozen=True, slots=True)
class GoldenOutputs:
    expected_ns: float
    hdi_low: float  # 95%
    hdi_high: float
    above_2: float  # P(NS > 2)
    below_minus_2: float  # P(NS < -2)
    context_hdi_width: float  # W2
    interval_low_mm: float
    interval_high_mm: float
    percentile: float
    median_at_2_mm: float  # median of f1 + 2 exp(f2)


@dataclass(frozen=True, slots=True)
class GoldenCase:
    patient: Patient
    diameter_mm: float
    moments: GoldenMoments
    outputs: GoldenOutputs


@dataclass(frozen=True, slots=True)
class GoldenFile:
    format: int
    cases: tuple[GoldenCase, ...]


def choose_golden_inputs(
    age_years: NDArray[np.float64],  # [N] the training table, one row a person
    male: NDArray[np.float64],  # [N] 1 or 0
    height_cm: NDArray[np.float64],  # [N]
    weight_kg: NDArray[np.float64],  # [N]
    seed: int,
) -> tuple[GoldenInput, ...]:
    """Training people spread over age and sex, the people at the ends of every range, and some from outside."""
    rng = np.random.default_rng(seed)
    people = np.column_stack([age_years, male, height_cm, weight_kg])
    rows = [*_spread(age_years, male, rng), *_extremes(age_years, height_cm, weight_kg)]
    patients = (*(_patient(people[row]) for row in rows), *OUTSIDE)
    return tuple(GoldenInput(patient, SCORES[k % len(SCORES)]) for k, patient in enumerate(patients))


def _spread(age_years: NDArray[np.float64], male: NDArray[np.float64], rng: np.random.Generator) -> list[int]:
    """One person from each of seven equal age groups of either sex."""
    by_sex = (np.flatnonzero(male == sex) for sex in (1.0, 0.0))
    ordered = (rows[np.argsort(age_years[rows], kind="stable")] for rows in by_sex)
    groups = (group for rows in ordered for group in np.array_split(rows, _SPREAD // 2) if group.size)
    return [int(rng.choice(group)) for group in groups]


def _extremes(*columns: NDArray[np.float64]) -> list[int]:
    return [int(end(column)) for column in columns for end in (np.argmin, np.argmax)]


def _patient(row: NDArray[np.float64]) -> Patient:
    age_years, male, height_cm, weight_kg = row.tolist()
    return Patient(age_years, Sex.MALE if male else Sex.FEMALE, height_cm, weight_kg)
