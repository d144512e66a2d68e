"""Who was measured, the body sizes that follow, and the row of covariates that a model takes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

MONTHS_BELOW_YEARS = 2  # an infant's age is given in months
MONTHS_IN_A_YEAR = 12
ROUNDED_MONTH = 0.01  # an age sent as 0.083 years means one month

# Only to choose between possible units of a height and a weight.
USUAL_BMI_KG_M2, CHILDS_USUAL_BMI_KG_M2, CHILDS_HEIGHT_CM = 23.0, 16.0, 140.0


class Sex(StrEnum):
    """The reference sex: which healthy people the patient is compared with."""

    MALE = "male"
    FEMALE = "female"


@dataclass(frozen=True, slots=True)
class Patient:
    age_years: float
    sex: Sex
    height_cm: float
    weight_kg: float

    @property
    def bsa_m2(self) -> float:
        return haycock_bsa_m2(self.height_cm, self.weight_kg)

    @property
    def bmi_kg_m2(self) -> float:
        return bmi_kg_m2(self.height_cm, self.weight_kg)


Size = TypeVar("Size", float, NDArray[np.float64])  # one person, or a column of a table


def haycock_bsa_m2(height_cm: Size, weight_kg: Size) -> Size:
    """Body surface area by Haycock et al. 1978."""
    area: Size = 0.024265 * height_cm**0.3964 * weight_kg**0.5378
    return area


def bmi_kg_m2(height_cm: Size, weight_kg: Size) -> Size:
    """Body mass index."""
    return weight_kg / (height_cm / 100.0) ** 2


def unusualness(height_cm: float, weight_kg: float) -> float:
    """How far the body mass index is from what most people of this height have; 0 if it is just that."""
    usual = CHILDS_USUAL_BMI_KG_M2 if height_cm < CHILDS_HEIGHT_CM else USUAL_BMI_KG_M2
    return abs(math.log(bmi_kg_m2(height_cm, weight_kg) / usual))


def completed_age(age_years: float) -> tuple[int, str]:
    """As people say it: completed years, or below two years completed months, with the unit."""
    months = math.floor(MONTHS_IN_A_YEAR * age_years + ROUNDED_MONTH)
    if months < MONTHS_IN_A_YEAR * MONTHS_BELOW_YEARS:
        return months, "month"
    return max(math.floor(age_years), MONTHS_BELOW_YEARS), "year"


AgeTransform = Literal["log", "identity"]

# A newborn has a logarithm too: one day old. Far below every training range, so no score rests on it.
YOUNGEST_AGE_YEARS = 1.0 / 365.25


def covariate_names(age: AgeTransform) -> tuple[str, ...]:
    return ("log_age" if age == "log" else "age_years", "male", "height_cm", "weight_kg")


def covariates(patients: Sequence[Patient], age: AgeTransform) -> NDArray[np.float64]:
    """[N, 4] rows in the order of `covariate_names`, not standardised."""
    first = transform_age(age)
    rows = [(first(p.age_years), p.sex is Sex.MALE, p.height_cm, p.weight_kg) for p in patients]
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def transform_age(age: AgeTransform) -> Callable[[float], float]:
    return _log_age if age == "log" else _age


def _log_age(age_years: float) -> float:
    return math.log(max(age_years, YOUNGEST_AGE_YEARS))


def _age(age_years: float) -> float:
    return age_years


def covariate_columns(
    age_years: NDArray[np.float64],
    male: NDArray[np.float64] | NDArray[np.bool_],
    height_cm: NDArray[np.float64],
    weight_kg: NDArray[np.float64],
    *,
    age: AgeTransform,
) -> NDArray[np.float64]:
    """The same from columns; `male` is 1 or 0, or a mask."""
    rows = np.empty((age_years.size, 4))
    rows[:, 0] = np.log(np.maximum(age_years, YOUNGEST_AGE_YEARS)) if age == "log" else age_years
    rows[:, 1], rows[:, 2], rows[:, 3] = male, height_cm, weight_kg
    return rows
