"""Heights and weights of simulated people: CDC 2000 for children, NHANES for adults, rounded as a hospital writes them.

CDC 2000 growth charts (United States, public domain) give L, M and S by age: a measure at z standard deviations is
M·(1 + L·S·z)^(1/L), with L, M and S linear in age between the rows of `cdc_lms.csv`.
"""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

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
        """[N] the measure of children of these ages at these z."""
        months = 12.0 * age_years
        power, median, spread = (np.interp(months, self.age_months, column) for column in (self.L, self.M, self.S))
        # Where L crosses zero the limit M·exp(S·z) holds; a tiny L gives it without dividing by zero.
        power = np.where(np.abs(power) < 1e-9, 1e-9, power)
        value: Array = median * np.exp(np.log1p(power * spread * z) / power)
        return value


@cache
def growth_table(measure: Measure, sex: Sex) -> GrowthTable:
    text = resources.files("app.training").joinpath("cdc_lms.csv").read_text(encoding="utf-8")
    rows = [r for r in csv.DictReader(text.splitlines()) if r["measure"] == measure and r["sex"] == sex.value]
    columns = np.array([[float(row[name]) for name in ("age_months", "L", "M", "S")] for row in rows])
    return GrowthTable(*columns.T)


Rows = NDArray[np.intp]

ADULT_FROM_YEARS = 18.0
CHILD_HEIGHT_Z = (-2.5, 2.5)
CHILD_BMI_Z = (-2.0, 1.64)  # 1.64 is the 95th percentile, where obesity begins
ADULT_BMI = (18.5, 30.0)


@dataclass(frozen=True, slots=True)
class AdultBody:
    """NHANES, with t = age - 45: height = h0 + h1·t; ln BMI = b0 + b1·t + b2·t²; normal residuals."""

    height_cm: tuple[float, float]  # h0, h1
    height_sd_cm: float
    log_bmi: tuple[float, float, float]  # b0, b1, b2
    log_bmi_sd: float


ADULT_BODIES = {
    Sex.MALE: AdultBody((175.38, -0.0892), 7.61, (3.2395, 0.001754, -0.000055), 0.1122),
    Sex.FEMALE: AdultBody((162.13, -0.1159), 6.88, (3.2109, 0.001487, -0.000050), 0.1215),
}


def draw_bodies(rng: Generator, age_years: Array, male: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Heights [N] in cm and weights [N] in kg, to one decimal."""
    height, weight = np.empty_like(age_years), np.empty_like(age_years)
    for sex, has_sex in ((Sex.MALE, male), (Sex.FEMALE, ~male)):
        for draw, of_age in ((_children, age_years < ADULT_FROM_YEARS), (_adults, age_years >= ADULT_FROM_YEARS)):
            rows = has_sex & of_age
            height[rows], weight[rows] = draw(rng, age_years[rows], sex)
    return height, weight


def draw_until(
    propose: Callable[[NDArray[np.intp]], Array], accept: Callable[[Array], NDArray[np.bool_]], n: int
) -> Array:
    """[n] values by rejection: `propose(rows)` draws again for the rows that `accept` has not taken."""
    values = propose(np.arange(n))
    while (rejected := np.flatnonzero(~accept(values))).size:
        values[rejected] = propose(rejected)
    return values


def within(limits: tuple[float, float]) -> Callable[[Array], NDArray[np.bool_]]:
    return lambda values: (values >= limits[0]) & (values <= limits[1])


def _children(rng: Generator, age: Array, sex: Sex) -> tuple[Array, Array]:
    n = len(age)
    height_z = draw_until(lambda rows: rng.standard_normal(len(rows)), within(CHILD_HEIGHT_Z), n)
    bmi_z = draw_until(lambda rows: rng.standard_normal(len(rows)), within(CHILD_BMI_Z), n)
    height = growth_table("stature", sex).value(age, height_z).round(1)
    return height, _weight(height, growth_table("bmi", sex).value(age, bmi_z))


def _adults(rng: Generator, age: Array, sex: Sex) -> tuple[Array, Array]:
    body, t = ADULT_BODIES[sex], age - 45.0
    h0, h1 = body.height_cm
    b0, b1, b2 = body.log_bmi
    height: Array = (h0 + h1 * t + body.height_sd_cm * rng.standard_normal(len(age))).round(1)
    log_bmi = b0 + b1 * t + b2 * t**2

    def propose(rows: Rows) -> Array:
        drawn = np.exp(log_bmi[rows] + body.log_bmi_sd * rng.standard_normal(len(rows)))
        return _weight(height[rows], drawn)

    # The limits hold for the weight as written, so that no rounded person falls outside them.
    limits = within(ADULT_BMI)
    return height, draw_until(propose, lambda weight: limits(weight / (height / 100.0) ** 2), len(age))


def _weight(height_cm: Array, bmi: Array) -> Array:
    weight: Array = bmi * (height_cm / 100.0) ** 2
    return weight.round(1)
