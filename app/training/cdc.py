"""Growth of children: the CDC 2000 LMS values (United States, public domain), by year of age.

A measure x at z standard deviations is M·(1 + L·S·z)^(1/L), with L, M, S linear in age between the rows.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np

from app.domain.patient import Sex
from app.maths.moments import Array

Measure = Literal["stature", "bmi"]


@dataclass(frozen=True, slots=True)
class GrowthTable:
    age_months: Array  # [K] rising
    L: Array  # [K]
    M: Array  # [K] median, cm or kg/m²
    S: Array  # [K]

    def value(self, age_years: Array, z: Array) -> Array:
        """[N] the measure of children of these ages who stand at these z."""
        months = 12.0 * age_years
        power, median, spread = (np.interp(months, self.age_months, column) for column in (self.L, self.M, self.S))
        # Where L crosses zero the limit M·exp(S·z) holds; a tiny L stands for it without dividing by zero.
        power = np.where(np.abs(power) < 1e-9, 1e-9, power)
        value: Array = median * np.exp(np.log1p(power * spread * z) / power)
        return value


@cache
def growth_table(measure: Measure, sex: Sex) -> GrowthTable:
    text = resources.files("app.training").joinpath("cdc_lms.csv").read_text(encoding="utf-8")
    rows = [r for r in csv.DictReader(text.splitlines()) if r["measure"] == measure and r["sex"] == sex.value]
    columns = np.array([[float(row[name]) for name in ("age_months", "L", "M", "S")] for row in rows])
    return GrowthTable(*columns.T)
