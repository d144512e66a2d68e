import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from app.benchmark.gates import SIZES, Model, models, rejected_share
from app.domain.card import Calibration, Gate, MethodFit, TailCheck
from app.training.gates import check_gates, failures

SOUND = Calibration(
    folds=5,
    tails=(
        TailCheck("all", 1110, 0.031, 0.016),
        TailCheck("male", 555, 0.032, 0.014),
        TailCheck("female", 555, 0.030, 0.018),
        TailCheck("under 18 years", 166, 0.036, 0.012),
        TailCheck("60 years and more", 40, 0.0, 0.1),
    ),
    methods=(
        MethodFit("NS", -2.40, 0.031, 0.016, 0.02),
        MethodFit("linear", -2.45, 0.02, 0.03, 0.03),
        MethodFit("altman", -2.43, 0.02, 0.03, 0.03),
    ),
    pit_deciles=(0.1,) * 10,
)


def failed(calibration: Calibration, gpflow_difference: float = 1e-12, golden_failures: int = 0) -> list[str]:
    return failures(check_gates(calibration, gpflow_difference, golden_failures))


def with_tails(group: str, people: int, below: float, above: float) -> Calibration:
    return replace(SOUND, tails=(*SOUND.tails, TailCheck(group, people, below, above)))


def with_density(of_ns: float) -> Calibration:
    return replace(SOUND, methods=(replace(SOUND.methods[0], log_density=of_ns), *SOUND.methods[1:]))


def test_a_sound_model_passes_every_gate() -> None:
    gates = check_gates(SOUND, 1e-12, 0)
    assert all(gate.passed for gate in gates)
    assert failures(gates) == []
    assert all(math.isfinite(bound) for gate in gates for bound in (gate.low, gate.high))  # a card holds no infinity


def limits(people: int, share: float, cells: int) -> tuple[int, int]:
    """By scipy.stats, another way than the code's: 1% over the cells, half of a cell's part for either side."""
    error = 0.01 / cells / 2.0
    return int(binom.ppf(error, people, share)), int(binom.isf(error, people, share))


def gate(calibration: Calibration, name: str) -> Gate:
    (found,) = [gate for gate in check_gates(calibration, 0.0, 0) if gate.name == name]
    return found


ALONE = replace(SOUND, tails=SOUND.tails[:1])  # three cells: both tails of everybody, and both together


@pytest.mark.parametrize("people", [100, 200, 1110, 5000])
def test_a_tail_may_hold_as_many_people_as_an_exact_binomial_test_allows(people: int) -> None:
    low, high = limits(people, 0.025, cells=3)
    for count, passes in ((low, True), (high, True), (high + 1, False), (low - 1, False)):
        if count >= 0:
            tails = (TailCheck("all", people, count / people, round(0.025 * people) / people),)
            found = gate(replace(SOUND, tails=tails), "share below the 95% interval, all")
            assert found.passed == passes
            assert (round(found.low * people), round(found.high * people)) == (low, high)


def test_the_cells_share_one_per_cent() -> None:
    """Everybody, two sexes and one age band of 100 people or more: nine cells. The band of 40 is no cell."""
    low, high = limits(1110, 0.025, cells=9)
    found = gate(SOUND, "share above the 95% interval, all")
    assert (round(found.low * 1110), round(found.high * 1110)) == (low, high)
    low, high = limits(1110, 0.05, cells=9)
    found = gate(SOUND, "share outside the 95% interval, all")
    assert (round(found.low * 1110), round(found.high * 1110)) == (low, high)
    assert not any("60 years" in gate.name for gate in check_gates(SOUND, 0.0, 0))


def test_the_limits_are_tighter_than_half_a_point_to_4_7_and_a_sex_has_a_lower_one() -> None:
    tails = tuple(TailCheck(group, people, 0.025, 0.025) for group, people in OF_1110)
    everybody, women = (
        gate(replace(SOUND, tails=tails), f"share below the 95% interval, {g}") for g in ("all", "female")
    )
    assert (everybody.low, everybody.high) == (12 / 1110, 47 / 1110)
    assert (women.low, women.high) == (3 / 555, 28 / 555)


OF_1110 = (
    ("all", 1110), ("male", 555), ("female", 555), ("under 18 years", 166), ("18 to 39 years", 345),
    ("40 to 59 years", 452), ("60 years and more", 147),
)  # fmt: skip


def test_a_spread_a_quarter_too_wide_fails_by_both_tails_together() -> None:
    tails = (TailCheck("all", 1110, 13 / 1110, 13 / 1110), *SOUND.tails[1:])  # neither tail alone is too small
    (sentence,) = failed(replace(SOUND, tails=tails))
    assert sentence.startswith("Gate 'share outside the 95% interval, all'")


def test_an_empty_tail_fails() -> None:
    sentences = failed(replace(ALONE, tails=(TailCheck("all", 1110, 0.05, 0.0),)))
    assert any(one.startswith("Gate 'share above the 95% interval, all': measured 0") for one in sentences)


def test_a_group_of_a_hundred_people_is_judged_and_a_smaller_one_is_not() -> None:
    for group in ("female", "18 to 39 years"):
        assert failed(with_tails(group, 99, 0.5, 0.5)) == []
        assert all(group in sentence for sentence in failed(with_tails(group, 100, 0.5, 0.5)))
        assert len(failed(with_tails(group, 100, 0.5, 0.5))) == 2


@pytest.mark.parametrize("people", SIZES)
def test_a_model_with_ideal_tails_is_refused_in_at_most_one_training_of_a_hundred(people: int) -> None:
    ideal, *_ = models()
    assert ideal.tails == (0.025, 0.025)
    draws = 20_000
    found = rejected_share(ideal, people, draws, np.random.default_rng(8))
    assert 0.0005 < found < 0.01 + 3.0 * math.sqrt(0.01 / draws)


def test_a_student_t_scale_read_as_a_standard_deviation_is_mostly_refused() -> None:
    student = models()[2]
    assert 2.0 * student.tails[0] == pytest.approx(0.086, abs=0.001)
    assert rejected_share(student, 1110, 5000, np.random.default_rng(8)) > 0.9


@pytest.mark.parametrize(
    ("group", "people", "tails"),
    [(None, 1110, (0.05, 0.05)), ("female", 5000, (0.025, 0.06)), (None, 1110, (0.007, 0.007))],
)
def test_wrong_tails_are_refused(group: str | None, people: int, tails: tuple[float, float]) -> None:
    wrong = Model("wrong", tails) if group is None else Model("wrong", (0.025, 0.025), group, tails)
    assert rejected_share(wrong, people, 5000, np.random.default_rng(8)) > 0.95


def test_log_density_may_fall_little_behind_altman_and_the_linear_z_score() -> None:
    assert failed(with_density(-2.4799)) == []
    (sentence,) = failed(with_density(-2.49))
    assert "Altman's method" in sentence
    assert "missed by 0.01" in sentence
    both = failed(with_density(-2.51))
    assert [("Altman" in one, "linear Z-score" in one) for one in both] == [(True, False), (False, True)]


def test_another_answer_than_gpflow_fails() -> None:
    assert failed(SOUND, gpflow_difference=9e-10) == []
    (sentence,) = failed(SOUND, gpflow_difference=3e-9)
    assert sentence == "Gate 'largest difference from GPflow': measured 3e-09, allowed 0 to 1e-09, missed by 2e-09."


def test_one_golden_case_that_is_not_reproduced_fails() -> None:
    (sentence,) = failed(SOUND, golden_failures=1)
    assert "golden cases not reproduced" in sentence


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_figure_that_is_not_finite_fails(bad: float) -> None:
    assert any("not finite" in sentence for sentence in failed(with_density(bad)))
    assert failed(SOUND, gpflow_difference=bad if bad > 0 else -bad) != []


@pytest.mark.req("REQ-059")
def test_nan_passes_no_gate() -> None:
    assert any("linear Z-score" in sentence for sentence in failed(with_density(math.nan)))
    nowhere = replace(ALONE, tails=(TailCheck("all", 1000, math.nan, math.nan),))
    sentences = failed(nowhere, gpflow_difference=math.nan)
    assert len(sentences) == 5  # the two tails, both together, the count of figures, GPflow
    assert "Gate 'largest difference from GPflow': the measured value is not finite; allowed 0 to 1e-09." in sentences


def test_every_failure_is_named() -> None:
    gates = (Gate("first", 2.0, 0.0, 1.0), Gate("second", 0.5, 0.0, 1.0), Gate("third", -3.0, 0.0, 1.0))
    assert failures(gates) == [
        "Gate 'first': measured 2, allowed 0 to 1, missed by 1.",
        "Gate 'third': measured -3, allowed 0 to 1, missed by 3.",
    ]
