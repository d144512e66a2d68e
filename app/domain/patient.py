"""Who was measured, and the body sizes that follow."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

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
