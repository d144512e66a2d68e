"""A patient as the numbers that a model takes: the row of covariates, in one fixed order."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.domain.patient import Patient, Sex

AgeTransform = Literal["log", "identity"]

# A newborn has a logarithm too: one day old. Far below every training range, so no score rests on it.
YOUNGEST_AGE_YEARS = 1.0 / 365.25


def covariate_names(age: AgeTransform) -> tuple[str, ...]:
    return ("log_age" if age == "log" else "age_years", "male", "height_cm", "weight_kg")


def covariates(patients: Sequence[Patient], age: AgeTransform) -> NDArray[np.float64]:
    """[N, 4] rows in the order of `covariate_names`, not standardised."""
    first = _log_age if age == "log" else _age
    rows = [(first(p.age_years), p.sex is Sex.MALE, p.height_cm, p.weight_kg) for p in patients]
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def _log_age(age_years: float) -> float:
    return math.log(max(age_years, YOUNGEST_AGE_YEARS))


def _age(age_years: float) -> float:
    return age_years


def covariate_columns(
    age_years: NDArray[np.float64],
    male: NDArray[np.float64],
    height_cm: NDArray[np.float64],
    weight_kg: NDArray[np.float64],
    *,
    age: AgeTransform,
) -> NDArray[np.float64]:
    """The same from columns, for tables of people."""
    first = np.log(np.maximum(age_years, YOUNGEST_AGE_YEARS)) if age == "log" else age_years
    return np.column_stack([first, male, height_cm, weight_kg])
