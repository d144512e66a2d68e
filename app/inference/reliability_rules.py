"""How far to trust a score: the verdict, and the reasons for it.

Reliability is judged from who was measured and how, never from the diameter. A verdict from the width of the score's
own interval would call most dilated aortas unreliable, because that width grows with the score; W2, the width at a
fixed score, does not.

A message claims nothing that its own rounded numbers, or the patient's age in whole years, could contradict. All
messages of a model are written once; judging a measurement only picks among them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.domain.card import ModelCard, Range
from app.domain.patient import MONTHS_IN_A_YEAR, Sex, completed_age
from app.domain.query import CONVENTIONS, Convention, MeasurementColumns, OneMeasurement
from app.domain.score import DIFFERS, EDGE, OUTSIDE, SPARSE, WIDE, Finding, Verdict, worst_verdict
from app.maths.moments import Array, Real
from app.schemas.answers import Reason

Keys = NDArray[np.intp]  # each stands for an assessment

ROUNDING = 1e-6  # 110.3 may be 1102.9999999999998 tenths
LIKE_THIS = "For patients of this age, sex and body size,"


@dataclass(frozen=True, slots=True)
class Assessment:
    """The verdict that a set of findings leads to, with its reasons as the response gives them."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    findings: tuple[Finding, ...]
    is_outside_training_range: bool

    @classmethod
    def of(cls, findings: tuple[Finding, ...]) -> "Assessment":
        return cls(
            worst_verdict(findings),
            tuple(Reason(finding.code, finding.message) for finding in findings),
            findings,
            any(finding.code == OUTSIDE for finding in findings),
        )


class _Limits(NamedTuple):
    """A training range, the wider one beyond which nothing is reliable, and what to say outside either."""

    trained: Range
    beyond: Range
    near: Finding
    far: Finding


NOBODY = Finding(OUTSIDE, "Nobody of this sex was in the training cohort.", "not_reliable", "sex")
SEXES = (Sex.FEMALE, Sex.MALE)

# A judged measurement as one number: the sex, and by quantity whether it is ordinary (0), outside the training range
# (1) or beyond (2); for the age which of six findings applies; and the convention.
WIDTH, RARITY, AGE, HEIGHT, WEIGHT, BMI = range(6)
UNITS = (2, 6, 0, 18, 54, 162)
UNIT_COLUMN = np.array(UNITS)
AGE_UNIT = 486
CONVENTION_UNIT = 7 * AGE_UNIT


class ReliabilityRules:
    """The contract's table with the limits on a model's card."""

    def __init__(self, card: ModelCard) -> None:
        self._card, self._quantiles = card, np.array(card.width_quantiles)
        self._limits = [_limits(card, sex) for sex in SEXES]
        self._ends_of_one = [
            [(*astuple(limit.trained), *astuple(limit.beyond)) for limit in limits] for limits in self._limits
        ]
        # [4, 6, 2] low, high, and both beyond; by quantity; by sex
        self._ends = np.array(self._ends_of_one).transpose(2, 1, 0)
        self._ages = _age_findings(card)
        self._assessments: dict[int, Assessment] = {}

    def percentile(self, w2: Real) -> Real:
        """Where W2 stands among the training contexts, 0 to 100: a number, or a column of them."""
        return width_percentile(w2, self._quantiles)

    def assess(self, measurements: MeasurementColumns, w2: Array, percentile: Array) -> Keys:
        """The key of each measurement's `assessment`, [N].

        `w2` [N] are the widths W2 of the contexts, `percentile` [N] their percentiles in the training cohort.
        """
        age, height, weight = measurements.age_years, measurements.height_cm, measurements.weight_kg
        values = np.concatenate((w2, percentile, age, height, weight, measurements.bmi_kg_m2)).reshape(6, -1)
        sex = measurements.male.astype(np.intp)
        low, high, low_beyond, high_beyond = self._ends.take(sex, axis=2)
        outside = (values < low) | (values > high)
        beyond = (values < low_beyond) | (values > high_beyond)
        keys: Keys = sex + UNIT_COLUMN.dot(outside) + UNIT_COLUMN.dot(beyond)
        keys += CONVENTION_UNIT * measurements.convention
        for row in np.flatnonzero(outside[AGE]).tolist():
            keys[row] += AGE_UNIT * self._ages.index(_unusual_age(age.item(row), self._card))
        return keys

    def assess_one(self, one: OneMeasurement, w2: float, percentile: float) -> int:
        """The same with floats, which takes less time for a few measurements."""
        key = one.male + CONVENTION_UNIT * one.convention
        values = (w2, percentile, one.age_years, one.height_cm, one.weight_kg, one.bmi_kg_m2)
        for value, unit, (low, high, low_beyond, high_beyond) in zip(
            values, UNITS, self._ends_of_one[one.male], strict=True
        ):
            if not low <= value <= high:
                key += unit if low_beyond <= value <= high_beyond else 2 * unit
                if not unit:
                    key += AGE_UNIT * self._ages.index(_unusual_age(one.age_years, self._card))
        return key

    def assessment(self, key: int) -> Assessment:
        """The same object for the same key."""
        return self._assessments.get(key) or self._new_assessment(key)

    def are_unreliable(self, keys: Keys) -> NDArray[np.bool_]:
        """Which of the assessments [N] have the verdict `not_reliable`."""
        distinct, each = np.unique(keys, return_inverse=True)
        found = [self.assessment(key).verdict == "not_reliable" for key in distinct.tolist()]
        unreliable: NDArray[np.bool_] = np.array(found)[each]
        return unreliable

    def _new_assessment(self, key: int) -> Assessment:
        sex, convention = SEXES[key % 2], CONVENTIONS[key // CONVENTION_UNIT]
        width, rarity, _, *sizes = [
            (None, limit.near, limit.far)[key % AGE_UNIT // unit % 3] if unit else None
            for limit, unit in zip(self._limits[key % 2], UNITS, strict=True)
        ]
        age, nobody = self._ages[key % CONVENTION_UNIT // AGE_UNIT], None if _is_trained(self._card, sex) else NOBODY
        found = (width, rarity, age, nobody, *sizes, _differs(convention, self._card))
        assessment = Assessment.of(tuple(finding for finding in found if finding))
        return self._assessments.setdefault(key, assessment)


def width_percentile(w2: Real, quantiles: Array) -> Real:
    """Between evenly spaced quantiles by a straight line."""
    return np.interp(w2, quantiles, _percents(quantiles.size))


@cache
def _percents(count: int) -> Array:
    return np.linspace(0.0, 100.0, count)


def _limits(card: ModelCard, sex: Sex) -> tuple[_Limits, ...]:
    """In the order of WIDTH to BMI. Nothing is said about the size of people whose sex was not in the cohort."""
    limits = card.reliability
    share = f"{limits.width_percentile_caution:g}%"
    rare = f"{LIKE_THIS} the score is less certain than for {share} of the training cohort."
    sparse = Finding(SPARSE, rare, "caution", "rarity")
    trained, middle = card.ranges.age_years, card.ranges.age_years_middle_98
    ordinary = Range(max(trained.low, middle.low), min(trained.high, middle.high))
    sizes = (_ANY_SIZE,) * 3
    if _is_trained(card, sex):
        ranges = card.ranges
        height, weight = ranges.height_cm[sex], ranges.weight_kg[sex]
        sizes = (_size("height", "cm", height, card), _size("weight", "kg", weight, card), _bmi(card))
    return (
        _Limits(_up_to(limits.width_caution), _up_to(limits.width_not_reliable), *_wide(card)),
        _Limits(_up_to(limits.width_percentile_caution), _up_to(math.inf), sparse, sparse),
        _Limits(ordinary, trained, OLD, OLD),  # which finding depends on the age itself
        *sizes,
    )


def _is_trained(card: ModelCard, sex: Sex) -> bool:
    return sex in card.ranges.height_cm and sex in card.ranges.weight_kg


def _up_to(high: float) -> Range:
    return Range(-math.inf, high)


_ANY_SIZE = _Limits(_up_to(math.inf), _up_to(math.inf), NOBODY, NOBODY)


def _wide(card: ModelCard) -> tuple[Finding, Finding]:
    limits = card.reliability
    near, far = (
        f"{LIKE_THIS} a score of 2 would have a 95% interval wider than {exceeded:g}."
        for exceeded in (limits.width_caution, limits.width_not_reliable)
    )
    return Finding(WIDE, near, "caution", "width"), Finding(WIDE, far, "not_reliable", "width")


def _size(about: str, unit: str, trained: Range, card: ModelCard) -> _Limits:
    share = card.reliability.size_beyond_share
    beyond = Range(trained.low * (1.0 - share), trained.high * (1.0 + share))
    of_whom = f"the range of the training cohort for this sex, {_span(trained)} {unit}."
    return _Limits(
        trained,
        beyond,
        Finding(OUTSIDE, f"The {about} is outside {of_whom}", "caution", about),
        Finding(OUTSIDE, f"The {about} is more than {100.0 * share:g}% outside {of_whom}", "not_reliable", about),
    )


def _bmi(card: ModelCard) -> _Limits:
    trained, margin, about = card.ranges.bmi_kg_m2, card.reliability.bmi_beyond_kg_m2, "body mass index"
    of_whom = f"the range of the training cohort, {_span(trained)} kg/m²."
    return _Limits(
        trained,
        Range(trained.low - margin, trained.high + margin),
        Finding(OUTSIDE, f"The {about} is outside {of_whom}", "caution", about),
        Finding(OUTSIDE, f"The {about} is more than {margin:g} kg/m² outside {of_whom}", "not_reliable", about),
    )


def _age_findings(card: ModelCard) -> tuple[Finding | None, ...]:
    """None, and all that `_unusual_age` can find."""
    youngest, oldest = card.ranges.age_years.low, card.ranges.age_years.high
    outside = [(_younger(youngest, same_age=same), _older(oldest, same_age=same)) for same in (False, True)]
    return (None, YOUNG, OLD, *outside[0], *outside[1])


def _unusual_age(age: float, card: ModelCard) -> Finding:
    """Of a patient outside the training ages, or outside their middle 98%."""
    trained, middle = card.ranges.age_years, card.ranges.age_years_middle_98
    if age > trained.high:
        return _older(trained.high, same_age=completed_age(age) == completed_age(trained.high))
    if age < trained.low:
        return _younger(trained.low, same_age=completed_age(age) == completed_age(trained.low))
    return OLD if age > middle.high else YOUNG


OLD, YOUNG = (
    Finding(EDGE, f"At most about 1% of the training cohort were as {word} as this patient.", "caution", word)
    for word in ("old", "young")
)


@cache
def _older(oldest: float, *, same_age: bool) -> Finding:
    how, whose = _compared(oldest, "older", math.floor, same_age=same_age)
    message = f"The patient is {how} than the oldest person in the training cohort, who was {whose}."
    return Finding(OUTSIDE, message, "not_reliable", "older")


@cache
def _younger(youngest: float, *, same_age: bool) -> Finding:
    how, whose = _compared(youngest, "younger", math.ceil, same_age=same_age)
    message = f"The patient is {how} than the youngest person in the training cohort, who was {whose}."
    return Finding(OUTSIDE, message, "not_reliable", "younger")


def _compared(trained: float, word: str, whole: Callable[[float], int], *, same_age: bool) -> tuple[str, str]:
    """How the patient compares with a training person, and that person's age: in months where the years are the same.

    `whole` rounds the months away from the patient's age.
    """
    if not same_age:
        return word, f"{_counted(*completed_age(trained))} old"
    years, months = divmod(whole(MONTHS_IN_A_YEAR * trained), MONTHS_IN_A_YEAR)
    parts = [_counted(number, unit) for number, unit in ((years, "year"), (months, "month")) if number]
    return f"a little {word}", f"{' and '.join(parts)} old"


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"


def _differs(convention: Convention, card: ModelCard) -> Finding | None:
    parts = convention.differences(card.convention)
    if not parts:
        return None
    edge, theirs = card.convention.edge, (card.convention.phase, card.convention.modality)
    taken = ", ".join(part for part in (edge and f"{edge} edge", *theirs) if part)
    message = f"The measurement differs in {listed(parts)} from those of the training cohort ({taken})."
    too_many = len(parts) >= card.reliability.convention_differences_not_reliable
    return Finding(DIFFERS, message, "not_reliable" if too_many else "caution", "convention")


def listed(parts: Sequence[str]) -> str:
    """edge · edge and phase · edge, phase and modality"""
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def _span(trained: Range) -> str:
    """To a tenth and inwards, so that a value outside the range is outside the printed one."""
    low, high = math.ceil(10.0 * trained.low - ROUNDING) / 10.0, math.floor(10.0 * trained.high + ROUNDING) / 10.0
    return f"{low:g} to {high:g}"
