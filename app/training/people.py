"""A table of people as columns, and where those people stand."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.card import Range, TrainingRanges
from app.domain.context import AgeTransform, covariate_columns
from app.domain.patient import Sex
from app.maths.moments import Array

AGE_BANDS = (
    ("under 18 years", 0.0, 18.0),
    ("18 to 39 years", 18.0, 40.0),
    ("40 to 59 years", 40.0, 60.0),
    ("60 years and more", 60.0, np.inf),
)


@dataclass(frozen=True, slots=True)
class Table:
    """People as read from a file; what could not be read as a number is NaN and stands in `cells` as it was."""

    diameter_column: str
    sha256: str  # of the file's bytes
    rows: NDArray[np.int64]  # [N] row in the file, the header being row 1
    ragged_rows: tuple[int, ...]  # rows with more or fewer cells than the header; not among the N
    cells: Mapping[str, tuple[str, ...]]  # [N] texts by column, those that training does not use too
    age_years: Array  # [N]
    male: Array  # [N] 1 or 0
    height_cm: Array  # [N]
    weight_kg: Array  # [N]
    diameter_mm: Array  # [N]

    @property
    def bmi_kg_m2(self) -> Array:
        with np.errstate(all="ignore"):  # an unchecked table may hold a height of 0
            return self.weight_kg / (self.height_cm / 100.0) ** 2

    @property
    def numbers(self) -> dict[str, Array]:
        """The measured columns, by their names in the file."""
        return {
            "age_years": self.age_years,
            "height_cm": self.height_cm,
            "weight_kg": self.weight_kg,
            self.diameter_column: self.diameter_mm,
        }

    def covariates(self, age: AgeTransform) -> Array:
        """[N, 4]"""
        return covariate_columns(self.age_years, self.male, self.height_cm, self.weight_kg, age=age)

    def of_sex(self, sex: Sex) -> NDArray[np.bool_]:
        return np.equal(self.male, float(sex is Sex.MALE))

    def __len__(self) -> int:
        return len(self.rows)


def training_ranges(table: Table) -> TrainingRanges:
    """Of a table that has passed its checks."""
    first, last = np.percentile(table.age_years, [1.0, 99.0])
    return TrainingRanges(
        age_years=_range(table.age_years),
        age_years_middle_98=Range(float(first), float(last)),
        height_cm={sex.value: _range(table.height_cm[table.of_sex(sex)]) for sex in Sex},
        weight_kg={sex.value: _range(table.weight_kg[table.of_sex(sex)]) for sex in Sex},
        bmi_kg_m2=_range(table.bmi_kg_m2),
    )


def in_band(age_years: Array, low: float, high: float) -> NDArray[np.bool_]:
    return (age_years >= low) & (age_years < high)


def _range(values: Array) -> Range:
    return Range(float(values.min()), float(values.max()))
