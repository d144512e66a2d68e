"""The median body mass index of a cohort by age and sex, at which a reliability map is drawn.

Where a card does not hold it, because the version was published without it, there are two other sources, and the map
says which one it used: the training table itself, if it is one that this project can make again (known by its SHA-256),
or published medians of the general population.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from app.domain.card import BmiCurve, ModelCard
from app.domain.patient import Sex, bmi_kg_m2
from app.maths.moments import Array
from app.training.cohort import ADULT_BODIES, ADULT_FROM_YEARS, growth_table

PEOPLE_EACH = 25  # at least, of one sex, for a median
MOST_GROUPS = 12
FROM_TABLE = "These are the medians of the training table (SHA-256 {}…)."
FROM_CARD = "These are the medians of the training cohort."
PUBLISHED = "Published medians, because those of the cohort are not known: CDC 2000 below 18 years, NHANES from 18 on."


@dataclass(frozen=True, slots=True)
class MedianBmi:
    curve: BmiCurve
    source: str  # a sentence

    def at(self, age_years: Array) -> Array:
        """Between the groups by a straight line; beyond them that of the nearest."""
        return np.interp(age_years, self.curve.age_years, self.curve.bmi_kg_m2)


def median_bmi(card: ModelCard, sex: Sex) -> MedianBmi:
    if card.median_bmi is not UNSET and sex.value in card.median_bmi:
        return MedianBmi(card.median_bmi[sex.value], FROM_CARD)
    known = known_tables().get(card.cohort.table_sha256)
    if known is not None:
        return MedianBmi(known[sex.value], FROM_TABLE.format(card.cohort.table_sha256[:12]))
    return MedianBmi(_published(card, sex), PUBLISHED)


def median_bmi_curves(
    age_years: Array, male: NDArray[np.bool_], height_cm: Array, weight_kg: Array
) -> dict[str, BmiCurve]:
    """By sex, from a table of people. Groups of equal size in the order of age."""
    curves = {}
    for sex, rows in ((Sex.MALE, male), (Sex.FEMALE, ~male)):
        if rows.any():
            curves[sex.value] = _curve(age_years[rows], bmi_kg_m2(height_cm[rows], weight_kg[rows]))
    return curves


def _curve(age_years: Array, bmi: Array) -> BmiCurve:
    order = np.argsort(age_years, kind="stable")
    groups = np.array_split(order, min(max(order.size // PEOPLE_EACH, 1), MOST_GROUPS))
    return BmiCurve(
        tuple(round(float(np.median(age_years[group])), 2) for group in groups),
        tuple(round(float(np.median(bmi[group])), 2) for group in groups),
    )


@cache
def known_tables() -> Mapping[str, Mapping[str, BmiCurve]]:
    """Medians of tables that this project can make again, by SHA-256; `tests/inference` makes them again."""
    data = (resources.files("app.inference") / "median_bmi.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, dict[str, BmiCurve]])


def _published(card: ModelCard, sex: Sex) -> BmiCurve:
    ages = np.linspace(card.ranges.age_years.low, card.ranges.age_years.high, 61)
    b0, b1, b2 = ADULT_BODIES[sex].log_bmi
    t = ages - 45.0
    adult = np.exp(b0 + b1 * t + b2 * t**2)
    child = growth_table("bmi", sex).value(ages, np.zeros_like(ages))
    median = np.where(ages < ADULT_FROM_YEARS, child, adult)
    trained = card.ranges.bmi_kg_m2
    return BmiCurve(tuple(ages.tolist()), tuple(np.clip(median, trained.low, trained.high).tolist()))
