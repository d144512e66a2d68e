"""Who was measured, and the body sizes that follow."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray


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


def dubois_bsa_m2(height_cm: Size, weight_kg: Size) -> Size:
    """Body surface area by Du Bois and Du Bois 1916."""
    area: Size = 0.007184 * height_cm**0.725 * weight_kg**0.425
    return area


def bmi_kg_m2(height_cm: Size, weight_kg: Size) -> Size:
    """Body mass index."""
    return weight_kg / (height_cm / 100.0) ** 2
