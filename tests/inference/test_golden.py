from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

from app.domain.golden import GoldenCase, GoldenInput, GoldenMoments, GoldenOutputs, choose_golden_inputs
from app.inference.executor import NumpyExecutor
from app.inference.golden import GoldenFailure, check_golden, golden_cases
from app.maths.moments import Array, Moments
from tests.samples import a_posterior

POSTERIOR = a_posterior()
EXECUTOR = NumpyExecutor(POSTERIOR)
Y_SCALE = POSTERIOR.scaling.y_scale


def inputs() -> tuple[GoldenInput, ...]:
    rng = np.random.default_rng(1)
    n = 200
    male = (rng.random(n) < 0.5).astype(float)
    return choose_golden_inputs(rng.uniform(5, 85, n), male, rng.normal(170, 9, n), rng.normal(70, 10, n), seed=1)


@pytest.fixture(scope="module")
def cases() -> tuple[GoldenCase, ...]:
    return golden_cases(inputs(), "log", POSTERIOR.predict)


def test_a_model_reproduces_its_own_cases(cases: tuple[GoldenCase, ...]) -> None:
    result = check_golden(EXECUTOR, "log", Y_SCALE, cases)
    assert (result.cases, result.passed, result.failed, result.failures) == (24, 24, 0, ())


def test_diameters_stand_at_the_chosen_scores_and_are_tenths_of_a_millimetre(cases: tuple[GoldenCase, ...]) -> None:
    for chosen, case in zip(inputs(), cases, strict=True):
        reached = (case.diameter_mm - case.moments.m1) / np.exp(case.moments.m2)
        if case.diameter_mm > 3.0:
            assert reached == pytest.approx(chosen.score, abs=0.06)
        assert case.diameter_mm == round(case.diameter_mm, 1)


@dataclass(frozen=True)
class Shifted:
    """An executor that is off by a little in one moment."""

    name: str
    by: float

    def predict(self, X: Array) -> Moments:
        moments = POSTERIOR.predict(X)
        return replace(moments, **{self.name: getattr(moments, self.name) + self.by})


@pytest.mark.parametrize(("name", "unit"), [("m1", Y_SCALE), ("v1", Y_SCALE**2), ("m2", 1.0), ("v2", 1.0)])
def test_a_moment_off_by_more_than_1e_9_fails_by_name(cases: tuple[GoldenCase, ...], name: str, unit: float) -> None:
    assert check_golden(Shifted(name, 0.5e-9 * unit), "log", Y_SCALE, cases).failed == 0
    result = check_golden(Shifted(name, 2e-9 * unit), "log", Y_SCALE, cases)
    assert (result.passed, result.failed) == (0, 24)
    assert {failure.quantity for failure in result.failures} == {name}


@pytest.mark.parametrize("name", [field.name for field in fields(GoldenOutputs)])
def test_an_output_that_moved_fails_by_name(cases: tuple[GoldenCase, ...], name: str) -> None:
    case = cases[5]
    value = getattr(case.outputs, name)
    width = case.outputs.hdi_high - case.outputs.hdi_low
    moved = value + 3e-7 * (width if name.startswith("hdi") else max(abs(value), 1e-4))
    altered = replace(case, outputs=replace(case.outputs, **{name: moved}))
    result = check_golden(EXECUTOR, "log", Y_SCALE, (*cases[:5], altered, *cases[6:]))
    assert result.failures == (GoldenFailure(5, name, moved, result.failures[0].found),)
    assert result.failures[0].found == pytest.approx(value, rel=1e-6)
    assert result.passed == 23


def test_a_case_with_two_faults_is_one_failed_case(cases: tuple[GoldenCase, ...]) -> None:
    altered = replace(cases[0], outputs=replace(cases[0].outputs, expected_ns=9.0, percentile=1.0))
    result = check_golden(EXECUTOR, "log", Y_SCALE, (altered, *cases[1:]))
    assert (len(result.failures), result.failed, result.passed) == (2, 1, 23)


def test_an_executor_that_answers_nonsense_fails(cases: tuple[GoldenCase, ...]) -> None:
    assert check_golden(Shifted("m1", float("nan")), "log", Y_SCALE, cases).failed == 24


def test_a_variance_taken_for_a_standard_deviation_fails(cases: tuple[GoldenCase, ...]) -> None:
    """The classic mistake: the outputs of sqrt(v) where v belongs."""
    slipped = [
        replace(
            case, moments=GoldenMoments(case.moments.m1, case.moments.v1**0.5, case.moments.m2, case.moments.v2**0.5)
        )
        for case in cases
    ]
    result = check_golden(EXECUTOR, "log", Y_SCALE, slipped)
    assert {failure.quantity for failure in result.failures} >= {"v1", "v2", "expected_ns", "hdi_low", "hdi_high"}
