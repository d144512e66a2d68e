import math
from dataclasses import replace

import numpy as np
import pytest

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


@pytest.mark.parametrize("people", [200, 1110, 5000])
def test_each_tail_may_miss_by_a_point_and_its_sampling_error(people: int) -> None:
    margin = 0.01 + 2.576 * math.sqrt(0.025 * 0.975 / people)
    assert failed(with_tails("all", people, 0.025, 0.0249 + margin)) == []
    (low_tail,) = failed(with_tails("all", people, 0.0251 + margin, 0.025))
    (high_tail,) = failed(with_tails("all", people, 0.025, 0.0251 + margin))
    assert "below" in low_tail
    assert "above" in high_tail


def test_a_spread_a_quarter_too_wide_fails_by_both_tails_together() -> None:
    tail = 0.0071  # beyond 1.25 · 1.96 standard deviations
    tails = (TailCheck("all", 1110, tail, tail), *SOUND.tails[1:])
    (sentence,) = failed(replace(SOUND, tails=tails))
    assert sentence.startswith("Gate 'share outside the 95 % interval, all'")


def test_with_many_people_an_empty_tail_fails_too() -> None:
    (sentence,) = failed(with_tails("all", 20_000, 0.025, 0.0))
    assert sentence.startswith("Gate 'share above the 95 % interval, all': 0 was measured")


def test_the_sexes_are_gated_with_the_sampling_error_of_their_own_number() -> None:
    assert failed(with_tails("female", 100, 0.06, 0.025)) == []
    (sentence,) = failed(with_tails("female", 2000, 0.06, 0.025))
    assert "female" in sentence


def test_an_age_band_is_gated_more_widely_and_a_small_one_not_at_all() -> None:
    margin = 0.02 + 3.29 * math.sqrt(0.025 * 0.975 / 150)
    assert failed(with_tails("18 to 39 years", 150, 0.0249 + margin, 0.025)) == []
    (sentence,) = failed(with_tails("18 to 39 years", 150, 0.0251 + margin, 0.025))
    assert "18 to 39 years" in sentence
    assert failed(with_tails("18 to 39 years", 99, 0.5, 0.5)) == []


@pytest.mark.parametrize(
    ("below", "above", "fewest", "most"),
    [(0.025, 0.025, 0.98, 1.0), (0.015, 0.032, 0.95, 1.0), (0.05, 0.05, 0.0, 0.15)],
)
def test_gates_let_pass_good_tails_and_stop_doubled_ones(
    below: float, above: float, fewest: float, most: float
) -> None:
    rng = np.random.default_rng(8)
    groups = ("male", "female"), (555, 555)
    passed = 0
    for _ in range(300):
        under, over = (rng.binomial(groups[1], p) for p in (below, above))
        sexes = [TailCheck(group, n, u / n, o / n) for group, n, u, o in zip(*groups, under, over, strict=True)]
        everybody = TailCheck("all", 1110, under.sum() / 1110, over.sum() / 1110)
        passed += not failed(replace(SOUND, tails=(everybody, *sexes)))
    assert fewest <= passed / 300 <= most


def test_log_density_may_fall_little_behind_the_linear_z_score() -> None:
    assert failed(with_density(-2.4999)) == []
    (sentence,) = failed(with_density(-2.51))
    assert "linear Z-score" in sentence
    assert "missed by 0.01" in sentence


def test_another_answer_than_gpflow_fails() -> None:
    assert failed(SOUND, gpflow_difference=9e-10) == []
    (sentence,) = failed(SOUND, gpflow_difference=3e-9)
    assert (
        sentence == "Gate 'largest difference from GPflow': 3e-09 was measured, allowed is 0 to 1e-09, missed by 2e-09."
    )


def test_one_golden_case_that_is_not_reproduced_fails() -> None:
    (sentence,) = failed(SOUND, golden_failures=1)
    assert "golden cases not reproduced" in sentence


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_figure_that_is_not_finite_fails(bad: float) -> None:
    assert any("not finite" in sentence for sentence in failed(with_density(bad)))
    assert failed(SOUND, gpflow_difference=bad if bad > 0 else -bad) != []


def test_nan_passes_no_gate() -> None:
    assert any("linear Z-score" in sentence for sentence in failed(with_density(math.nan)))
    sentences = failed(with_tails("all", 1000, math.nan, math.nan), gpflow_difference=math.nan)
    assert len(sentences) == 4  # the two tails, the count of figures, GPflow
    assert "Gate 'largest difference from GPflow': the figure is not finite; allowed is 0 to 1e-09." in sentences


def test_every_failure_is_told() -> None:
    gates = (Gate("first", 2.0, 0.0, 1.0), Gate("second", 0.5, 0.0, 1.0), Gate("third", -3.0, 0.0, 1.0))
    assert failures(gates) == [
        "Gate 'first': 2 was measured, allowed is 0 to 1, missed by 1.",
        "Gate 'third': -3 was measured, allowed is 0 to 1, missed by 3.",
    ]
