"""What an answer holds where, to nine digits, and what never becomes one."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from app.domain.query import CONVENTIONS
from app.domain.score import Tails
from app.errors import UnverifiedResult
from app.inference.advisories import CONVENTION_UNIT
from app.inference.answer_columns import (
    ERROR_FREE_EXCEEDANCE,
    ERROR_FREE_HDI,
    GIVEN_ALWAYS,
    PER_THRESHOLD,
    SINGLE,
    AnswerColumns,
    JudgementColumns,
)
from app.inference.reliability_rules import Assessment
from app.schemas.answers import Answer, DiameterAtThreshold, Exceedance, Hdi, IntervalMm, MeasurementInput

THRESHOLDS = (2.0, 3.0)
NAMES = (*SINGLE, *PER_THRESHOLD, *ERROR_FREE_HDI, *ERROR_FREE_EXCEEDANCE)
NUMBERS: dict[str, float | list[float]] = {
    "age_years": 55.5, "height_cm": 176.5, "weight_kg": 84.5, "diameter_mm": 41.5, "bsa_m2": 2.04, "bmi_kg_m2": 27.1,
    "expected_ns": 1.93, "hdi_low": 1.58, "hdi_high": 2.3, "hdi_width": 0.72, "expected_diameter_mm": 35.1,
    "expected_diameter_sd_mm": 0.31, "aleatoric_sd_mm": 3.06, "aleatoric_sd_log_se": 0.08, "interval_low_mm": 29.0,
    "interval_high_mm": 41.2, "percentile": 97.1, "linear_z": 1.71, "altman_z": 1.69, "diameter_per_bsa_mm_m2": 20.1,
    "diameter_per_height_cm_m": 2.33, "area_per_height_cm2_m": 7.5, "context_hdi_width": 0.61,
    "context_hdi_width_percentile": 62.0, "probability_above": [0.34, 0.01], "probability_below": [0.66, 0.99],
    "at_threshold_median": [41.25, 44.25], "at_threshold_low": [40.1, 43.1], "at_threshold_high": [42.5, 45.5],
    "error_free_hdi_low": 1.5, "error_free_hdi_high": 2.4, "error_free_hdi_width": 0.9,
    "error_free_probability_above": [0.4, 0.02], "error_free_probability_below": [0.6, 0.98],
}  # fmt: skip


def row(**changed: Any) -> list[float]:
    numbers = NUMBERS | changed
    return [number for name in NAMES for number in np.atleast_1d(numbers[name]).tolist()]


# By its key: withheld, and outside the training range.
ASSESSMENTS = [Assessment(verdict, (), (), outside) for verdict in ("ok", "not_reliable") for outside in (False, True)]
OF_ALL = len(CONVENTIONS) - 1  # a convention that states everything: no advisory


class JudgedRow(NamedTuple):
    withheld: bool
    altman_applies: bool
    outside: bool


def judged(*, withheld: bool = False, altman_applies: bool = True, outside: bool = False) -> JudgedRow:
    return JudgedRow(withheld, altman_applies, outside)


def columns_of(rows: list[list[float]], judged: Sequence[JudgedRow]) -> AnswerColumns:
    count = len(rows)
    tails = [[tail] * count for tail in (0.34, 0.0, 0.4, 0.0)]
    keys = [2 * one.withheld + one.outside for one in judged]
    others = [one.altman_applies for one in judged], keys, [CONVENTION_UNIT * OF_ALL] * count
    sides = [True] * count, [True] * count
    withheld = [one.withheld for one in judged]
    every = JudgementColumns._make([*sides, *tails, *others, withheld, ASSESSMENTS.__getitem__])
    return AnswerColumns(THRESHOLDS, 0.95, np.array(rows), every)


def one(what: JudgedRow | None = None, beside: int = 0, **changed: Any) -> Answer:
    """The answer of a row; `beside` as many other ones, so that the checks are those of columns."""
    rows = [row()] * beside + [row(**changed)]
    columns = columns_of(rows, [judged()] * beside + [what or judged()])
    return columns.answers()[-1]


def test_every_number_is_in_its_place() -> None:
    columns = columns_of([row()], [judged()])
    ((answer, tails, with_error, _, given),) = columns.scored()
    assert given == MeasurementInput(55.5, "male", 176.5, 84.5, 41.5, 2.04, "Haycock", 27.1)
    score, error_free, reference, comparators = (
        answer.score, answer.score_with_measurement_error, answer.reference, answer.comparators,
    )  # fmt: skip
    assert score
    assert error_free
    assert reference
    assert comparators
    assert (score.expected_ns, score.position) == (1.93, "uncertain")
    assert score.hdi == Hdi(0.95, 1.58, 2.3, 0.72)
    assert score.exceedance == (Exceedance(2.0, 0.34, 0.66), Exceedance(3.0, 0.01, 0.99))
    assert error_free.hdi == Hdi(0.95, 1.5, 2.4, 0.9)
    assert error_free.exceedance == (Exceedance(2.0, 0.4, 0.6), Exceedance(3.0, 0.02, 0.98))
    assert (reference.expected_diameter_mm, reference.expected_diameter_sd_mm) == (35.1, 0.31)
    assert (reference.aleatoric_sd_mm, reference.aleatoric_sd_log_se) == (3.06, 0.08)
    assert reference.interval_mm == IntervalMm(0.95, 29.0, 41.2)
    assert reference.percentile == 97.1
    assert reference.diameter_at_threshold_mm == (
        DiameterAtThreshold(2.0, 41.25, 40.1, 42.5),
        DiameterAtThreshold(3.0, 44.25, 43.1, 45.5),
    )
    assert (comparators.linear_z, comparators.altman_z, comparators.not_applicable) == (1.71, 1.69, ())
    assert (comparators.diameter_per_bsa_mm_m2, comparators.diameter_per_height_cm_m) == (20.1, 2.33)
    assert comparators.area_per_height_cm2_m == 7.5
    assert answer.reliability.context_hdi_width == 0.61
    assert answer.reliability.context_hdi_width_percentile == 62.0
    assert (tails, with_error) == (Tails(0.34, 0.0), Tails(0.4, 0.0))


def test_a_comparator_that_does_not_apply_is_null() -> None:
    for what, z_scores in ((judged(altman_applies=False), (1.71, None)), (judged(outside=True), (None, None))):
        found = one(what).comparators
        assert found is not None
        assert (found.linear_z, found.altman_z) == z_scores
        assert [each.field for each in found.not_applicable] == ["linear_z", "altman_z"][-z_scores.count(None) :]


def test_numbers_have_nine_digits_and_no_negative_zero() -> None:
    found = one(expected_ns=math.pi, linear_z=-0.0)
    assert found.score is not None
    assert found.comparators is not None
    assert found.score.expected_ns == 3.14159265
    assert str(found.comparators.linear_z) == "0.0"


@pytest.mark.parametrize("beside", [0, 7])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.req("REQ-022")
def test_a_number_that_is_not_finite_never_leaves(name: str, value: float, beside: int) -> None:
    broken: Any = [value, 0.5] if isinstance(NUMBERS[name], list) else value
    with np.errstate(all="ignore"), pytest.raises(UnverifiedResult):
        one(None, beside, **{name: broken})


@pytest.mark.parametrize("beside", [0, 7])
@pytest.mark.parametrize(
    "impossible",
    [
        {"hdi_low": 2.31},
        {"interval_low_mm": 41.3},
        {"error_free_hdi_high": 1.4},
        {"percentile": 100.1},
        {"percentile": -0.1},
        {"context_hdi_width_percentile": 101.0},
        {"probability_above": [0.34, 1.000001]},
        {"probability_above": [-0.000001, 0.0]},
        {"probability_below": [0.5, 1.1]},
        {"error_free_probability_above": [1.1, 0.0]},
        {"error_free_probability_below": [0.5, -0.1]},
        {"at_threshold_median": [40.0, 44.0]},
        {"at_threshold_median": [41.0, 46.0]},
        {"at_threshold_high": [40.0, 45.0]},
    ],
    ids=str,
)
@pytest.mark.req("REQ-022")
def test_what_cannot_be_true_never_leaves(impossible: dict[str, Any], beside: int) -> None:
    with pytest.raises(UnverifiedResult):
        one(beside=beside, **impossible)


@pytest.mark.parametrize("beside", [0, 7])
def test_a_withheld_score_may_be_impossible_but_not_what_is_given_all_the_same(beside: int) -> None:
    hidden = judged(withheld=True)
    with np.errstate(all="ignore"):
        answer = one(hidden, beside, expected_ns=math.nan, percentile=math.inf, hdi_low=9.0)
        assert (answer.score, answer.score_with_measurement_error) == (None, None)
        assert (answer.reference, answer.comparators) == (None, None)
        for name in GIVEN_ALWAYS:
            with pytest.raises(UnverifiedResult):
                one(hidden, beside, **{name: math.nan})


def test_a_probability_a_rounding_error_above_one_is_one() -> None:
    found = one(probability_above=[1.0 + 4e-16, 0.5])
    assert found.score is not None
    assert found.score.exceedance[0].probability == 1.0
