from dataclasses import dataclass, replace

import numpy as np
import pytest

from app.maths.moments import Array, Moments
from app.maths.statistics import fit_linear
from app.training.calibration import HeldOut, cross_validate, stratified_folds, summarise
from app.training.gates import check_gates, failures

MALE, HEIGHT = 0, 1


@dataclass(frozen=True)
class KnownTruth:
    """The generator's own mean and spread, as posteriors without any doubt; wrong on purpose where asked."""

    spread: float = 1.0
    shift_mm: float = 0.0

    def predict(self, X: Array) -> Moments:
        mean, sd = mean_and_sd(X)
        zero = np.zeros(len(X))
        return Moments(mean + self.shift_mm, zero, np.log(self.spread * sd), zero)


def mean_and_sd(X: Array) -> tuple[Array, Array]:
    return 20.0 + 2.0 * X[:, MALE] + X[:, HEIGHT], 1.0 + 0.5 * X[:, HEIGHT]


def people(n: int, seed: int = 1) -> tuple[Array, Array, Array]:
    """Covariates, diameters, ages."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.arange(n) % 2, rng.uniform(0.0, 4.0, n)])
    mean, sd = mean_and_sd(X)
    return X, mean + sd * rng.standard_normal(n), rng.uniform(5.0, 85.0, n)


def held_out(truth: KnownTruth, n: int = 4000) -> tuple[HeldOut, Array, Array]:
    X, y, age = people(n)
    seen = cross_validate(X, y, lambda X, y, seed: truth, folds=5, seed=3, male=X[:, MALE])
    return seen, age, X[:, MALE]


def test_folds_are_shuffled_and_alike_in_size_and_sex() -> None:
    male = np.array([1.0] * 53 + [0.0] * 26)
    fold = stratified_folds(male, 5, np.random.default_rng(2))
    for group in (fold, fold[male == 1.0], fold[male == 0.0]):
        assert np.ptp(np.bincount(group, minlength=5)) <= 1
    assert (np.diff(fold[:53]) % 5 != 1).any()  # not dealt out in the order of the table
    assert not np.array_equal(fold, stratified_folds(male, 5, np.random.default_rng(3)))


def test_nobody_is_judged_by_a_model_that_has_seen_them() -> None:
    X, y, _ = people(103)
    diameter_of = dict(zip(X[:, HEIGHT], y, strict=True))
    trained_on: list[set[float]] = []
    judged: list[float] = []

    class Witness:
        def __init__(self, seen: set[float]) -> None:
            self.seen = seen

        def predict(self, X: Array) -> Moments:
            assert not self.seen & set(X[:, HEIGHT])
            judged.extend(X[:, HEIGHT])
            return KnownTruth().predict(X)

    def fit_fold(X: Array, y: Array, seed: int) -> Witness:
        assert y.tolist() == [diameter_of[height] for height in X[:, HEIGHT]]
        trained_on.append(set(X[:, HEIGHT]))
        return Witness(trained_on[-1])

    seen = cross_validate(X, y, fit_fold, folds=5, seed=0, male=X[:, MALE])
    assert sorted(judged) == sorted(X[:, HEIGHT])
    assert [len(part) for part in trained_on] == [103 - int((seen.fold == k).sum()) for k in range(5)]
    np.testing.assert_array_equal(seen.moments.m1, mean_and_sd(X)[0])  # in the order of the table


def test_the_comparators_use_the_same_folds() -> None:
    X, y, _ = people(200)
    seen = cross_validate(X, y, lambda X, y, seed: KnownTruth(), folds=4, seed=9, male=X[:, MALE])
    held = seen.fold == 2
    reference = fit_linear(X[~held], y[~held])
    np.testing.assert_allclose(seen.linear_mean[held], reference.expected(X[held]))
    np.testing.assert_allclose(seen.linear_sd[held], reference.residual_sd)
    np.testing.assert_allclose(seen.altman_sd[held], reference.altman_sd(X[held]))


def test_every_fold_has_a_seed_of_its_own_and_all_follow_from_one() -> None:
    X, y, _ = people(100)

    def seeds_of(seed: int) -> list[int]:
        seeds: list[int] = []

        def fit_fold(X: Array, y: Array, fold_seed: int) -> KnownTruth:
            seeds.append(fold_seed)
            return KnownTruth()

        cross_validate(X, y, fit_fold, folds=5, seed=seed, male=X[:, MALE])
        return seeds

    assert len(set(seeds_of(1))) == 5
    assert seeds_of(1) == seeds_of(1) != seeds_of(2)


def test_the_truth_is_calibrated() -> None:
    seen, age, male = held_out(KnownTruth())
    calibration = summarise(seen, age, male)
    everybody, truth = calibration.tails[0], calibration.methods[0]
    assert (everybody.group, everybody.people, calibration.folds) == ("all", 4000, 5)
    assert everybody.below == pytest.approx(0.025, abs=0.008)
    assert everybody.above == pytest.approx(0.025, abs=0.008)
    assert (truth.method, truth.below, truth.above) == ("NS", everybody.below, everybody.above)
    assert truth.pit_deviation < 0.03
    assert calibration.pit_deciles == pytest.approx([0.1] * 10, abs=0.02)
    assert sum(calibration.pit_deciles) == pytest.approx(1.0)


def test_log_density_is_that_of_the_normal_when_nothing_is_in_doubt() -> None:
    seen, age, male = held_out(KnownTruth(), n=300)
    X, y, _ = people(300)
    mean, sd = mean_and_sd(X)
    expected = np.mean(-0.5 * ((y - mean) / sd) ** 2 - np.log(sd * np.sqrt(2.0 * np.pi)))
    assert summarise(seen, age, male).methods[0].log_density == pytest.approx(expected, rel=1e-9)


def test_the_truth_describes_people_better_than_altman_and_altman_better_than_one_spread() -> None:
    seen, age, male = held_out(KnownTruth())
    density = {method.method: method.log_density for method in summarise(seen, age, male).methods}
    assert density["NS"] > density["altman"] > density["linear"] + 0.05


def test_too_small_a_spread_shows_in_both_tails_and_a_shift_in_one() -> None:
    tight, shifted = (summarise(*held_out(truth)).tails[0] for truth in (KnownTruth(0.5), KnownTruth(shift_mm=-2.0)))
    assert tight.below == pytest.approx(0.164, abs=0.02)  # P(|z| > 1.96/2), a side
    assert tight.above == pytest.approx(0.164, abs=0.02)
    assert shifted.above > 0.10
    assert shifted.below < 0.02


def test_tails_are_given_by_sex_and_by_the_age_bands_that_have_people() -> None:
    X, y, age = people(500)
    male = X[:, MALE]
    y = np.where((male == 1.0) & (age >= 60.0), y + 30.0, y)
    seen = cross_validate(X, y, lambda X, y, seed: KnownTruth(), 5, 0, male=male)
    tails = {check.group: check for check in summarise(seen, age, male).tails}
    assert list(tails) == [
        "all", "male", "female", "under 18 years", "18 to 39 years", "40 to 59 years", "60 years and more",
    ]  # fmt: skip
    old = age >= 60.0
    assert tails["60 years and more"].people == old.sum()
    assert tails["60 years and more"].above >= np.mean(male[old])
    assert tails["male"].above > 0.2 > 0.06 > tails["female"].above
    adults = summarise(seen, np.full(500, 30.0), male)
    assert [check.group for check in adults.tails] == ["all", "male", "female", "18 to 39 years"]


def test_altman_has_a_density_even_where_its_line_crosses_zero() -> None:
    rng = np.random.default_rng(0)
    x = rng.exponential(1.0, 400)
    X = np.column_stack([np.arange(400) % 2, x])
    y = 30.0 + rng.standard_normal(400) * np.maximum(0.02, 1.5 - x)
    seen = cross_validate(X, y, lambda X, y, seed: KnownTruth(), 5, 0, male=X[:, MALE])
    assert (fit_linear(X, y).altman_sd(X) < 0.0).any()
    assert (seen.altman_sd >= 0.25 * seen.linear_sd - 1e-12).all()
    assert np.isfinite(summarise(seen, np.full(400, 40.0), X[:, MALE]).methods[2].log_density)


@pytest.mark.parametrize(
    ("name", "value"), [("m1", np.nan), ("v1", np.inf), ("m2", np.nan), ("v2", np.nan), ("v1", -1.0), ("v2", -1e-9)]
)
def test_one_person_without_a_usable_prediction_closes_the_gates(name: str, value: float) -> None:
    seen, age, male = held_out(KnownTruth(), n=200)
    broken = np.array(getattr(seen.moments, name))
    broken[17] = value
    calibration = summarise(replace(seen, moments=replace(seen.moments, **{name: broken})), age, male)
    assert np.isnan([calibration.tails[0].below, calibration.tails[0].above]).all()
    assert np.isnan([calibration.methods[0].log_density, calibration.methods[0].pit_deviation]).all()
    failed = failures(check_gates(calibration, 0.0, 0))
    assert any("not finite" in sentence for sentence in failed)
    assert any("share below the 95% interval, all" in sentence for sentence in failed)
    assert failures(check_gates(summarise(seen, age, male), 0.0, 0)) == []
