"""How far to trust a score, and what a reader should know beside it.

Reliability is judged from who was measured and how, never from the diameter. A verdict from the width of the score's
own interval would call most dilated aortas unreliable, because that width grows with the score; W2, the width at a
fixed score, does not.

A message claims nothing that its own rounded numbers, or the patient's age in whole years, could contradict. All
messages of a model are written once; judging a patient only picks among them.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from app.domain.card import ModelCard, Range
from app.domain.convention import Convention
from app.domain.limits import FAR_OUT, HIGH_BMI, LARGE_DIAMETER
from app.domain.patient import MONTHS_IN_A_YEAR, Patient, completed_age
from app.domain.query import ScoreQuery
from app.domain.reliability import DIFFERS, EDGE, OUTSIDE, SPARSE, WIDE, Finding, worst_verdict
from app.domain.score import Verdict
from app.schemas.answers import Advisory, Reason

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

    def finding(self, value: float) -> Finding:
        """Of a value outside the training range."""
        return self.near if self.beyond.low <= value <= self.beyond.high else self.far


NOBODY = Finding(OUTSIDE, "Nobody of this sex was in the training cohort.", "not_reliable", "sex")
NO_FINDINGS = Assessment.of(())


class ReliabilityRules:
    """The contract's table with the limits on a model's card."""

    def __init__(self, card: ModelCard) -> None:
        self._card, self._limits = card, card.reliability
        trained, middle = card.ranges.age_years, card.ranges.age_years_middle_98
        self._ordinary_age = Range(max(trained.low, middle.low), min(trained.high, middle.high))
        self._wide = _wide(card)
        share = f"{card.reliability.width_percentile_caution:g}%"
        rare = f"{LIKE_THIS} the score is less certain than for {share} of the training cohort."
        self._sparse = Finding(SPARSE, rare, "caution", "rarity")
        self._sizes = {
            sex: (_size("height", "cm", height, card), _size("weight", "kg", card.ranges.weight_kg[sex], card))
            for sex, height in card.ranges.height_cm.items()
            if sex in card.ranges.weight_kg
        }
        self._bmi = _bmi(card)
        self._conventions: dict[Convention, Finding | None] = {}
        self._rulings: dict[tuple[int, ...], Assessment] = {(): NO_FINDINGS}

    def percentile(self, w2: float) -> float:
        return width_percentile(w2, self._card.width_quantiles)

    def rule(self, patient: Patient, convention: Convention, w2: float, percentile: float) -> Assessment:
        """`w2` is the width W2 of the patient's context, `percentile` its percentile in the training cohort."""
        found: list[Finding] = []
        if w2 > self._limits.width_caution:
            found.append(self._wide[w2 > self._limits.width_not_reliable])
        if percentile > self._limits.width_percentile_caution:
            found.append(self._sparse)
        if not self._ordinary_age.low <= patient.age_years <= self._ordinary_age.high:
            found.append(_unusual_age(patient.age_years, self._card))
        sizes = self._sizes.get(patient.sex)
        if sizes is None:
            found.append(NOBODY)
        else:
            height, weight = sizes
            for limits, value in (
                (height, patient.height_cm),
                (weight, patient.weight_kg),
                (self._bmi, patient.bmi_kg_m2),
            ):
                trained = limits.trained
                if not trained.low <= value <= trained.high:
                    found.append(limits.finding(value))
        differs = self._differs(convention)
        if differs:
            found.append(differs)
        return self._ruling(found) if found else NO_FINDINGS

    def _ruling(self, found: list[Finding]) -> Assessment:
        """Findings live as long as these rules (or as this module), so that their identities name an assessment."""
        key = tuple([id(finding) for finding in found])
        assessment = self._rulings.get(key)
        if assessment is None:
            assessment = self._rulings[key] = Assessment.of(tuple(found))
        return assessment

    def _differs(self, convention: Convention) -> Finding | None:
        try:
            return self._conventions[convention]
        except KeyError:
            return self._conventions.setdefault(convention, _differs(convention, self._card))


def width_percentile(w2: float, quantiles: Sequence[float]) -> float:
    """Where W2 stands among the training contexts, 0 to 100, between evenly spaced quantiles by a straight line."""
    after = bisect_right(quantiles, w2)
    if after == 0:
        return 0.0
    if after == len(quantiles):
        return 100.0
    low, high = quantiles[after - 1], quantiles[after]
    return 100.0 * (after - 1 + (w2 - low) / (high - low)) / (len(quantiles) - 1)


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
    message = f"The measurement differs in {_listed(parts)} from those of the training cohort ({taken})."
    too_many = len(parts) >= card.reliability.convention_differences_not_reliable
    return Finding(DIFFERS, message, "not_reliable" if too_many else "caution", "convention")


def _listed(parts: Sequence[str]) -> str:
    """edge · edge and phase · edge, phase and modality"""
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def _span(trained: Range) -> str:
    """To a tenth and inwards, so that a value outside the range is outside the printed one."""
    low, high = math.ceil(10.0 * trained.low - ROUNDING) / 10.0, math.floor(10.0 * trained.high + ROUNDING) / 10.0
    return f"{low:g} to {high:g}"


# Advisories: what a reader should know beside the score. They never withhold anything.

INNER_EDGE = "Inner-edge measurements are about 3 mm smaller than leading-edge ones."
CONFIRM = "If the value is unexpected, check the measurement and its unit (mm)."
WIDEST_USUAL_MM = 80.0  # only the words change here, not whether there is an advisory

LARGE = Advisory(
    "absolute_diameter",
    "diameter_mm",
    "The diameter is 40 mm or more. Guidelines for adults also use absolute size, from 40 mm, for the aortic root and "
    "the ascending aorta; this does not depend on the score.",
)
OBESE = Advisory("bmi_high", "weight_kg", "The body mass index is above 50 kg/m². Was the weight given in pounds?")
FAR_ABOVE, FAR_AND_RARE, FAR_BELOW, FAR_AND_NOT_RELIABLE = (
    Advisory("far_out", "diameter_mm", f"{found} {CONFIRM}")
    for found in (
        "The score is above 6. Diameters of this size do occur.",
        "The score is above 6, and diameters of this size are rare.",
        "The score is below -6, and few aortas are this narrow.",
        "The score is beyond ±6.",  # of whom the model does not cover, nothing is known to be rare
    )
)


def advise(query: ScoreQuery, expected_ns: float | None, verdict: Verdict) -> tuple[Advisory, ...]:
    """`expected_ns` is None where the score is withheld: then nothing is said that rests on it."""
    patient, found = query.patient, []
    if patient.age_years >= LARGE_DIAMETER.from_age_years and not LARGE_DIAMETER.holds(query.diameter_mm):
        found.append(LARGE)
    not_stated = _not_stated(query.convention)
    if not_stated:
        found.append(not_stated)
    if expected_ns is not None and not FAR_OUT.holds(expected_ns):
        found.append(_far_out(query.diameter_mm, expected_ns, verdict))
    if patient.age_years >= HIGH_BMI.from_age_years and not HIGH_BMI.holds(patient.bmi_kg_m2):
        found.append(OBESE)
    return tuple(found)


def _far_out(diameter_mm: float, expected_ns: float, verdict: Verdict) -> Advisory:
    if verdict == "not_reliable":
        return FAR_AND_NOT_RELIABLE
    if expected_ns < 0.0:
        return FAR_BELOW
    return FAR_ABOVE if diameter_mm <= WIDEST_USUAL_MM else FAR_AND_RARE


@cache  # there are 48 conventions
def _not_stated(convention: Convention) -> Advisory | None:
    missing = convention.not_stated
    if not missing:
        return None
    hint = f" {INNER_EDGE}" if "edge" in missing else ""
    message = f"The {_listed(missing)} of the measurement {'was' if len(missing) == 1 else 'were'} not stated.{hint}"
    return Advisory("convention_not_stated", "convention", message)
