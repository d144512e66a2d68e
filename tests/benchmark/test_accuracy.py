import numpy as np
import pytest

from app.benchmark.accuracy import (
    END_POINT_LIMIT,
    ReferenceReport,
    SelfCheckReport,
    compare_with_draws,
    random_cases,
    render,
    self_check,
    shortest_window,
)
from app.benchmark.reference import ReferenceCase, ReferenceQuery, read_reference, solve
from tests.maths.score.test_hdi import REFERENCE


def test_shortest_window_is_the_shortest_of_all() -> None:
    window = shortest_window(np.array([0.0, 5.0, 6.0, 6.5, 7.0, 20.0]), 0.5)
    assert (window.low[0], window.high[0]) == (6.0, 7.0)


def test_draws_agree_with_the_exact_interval() -> None:
    report = compare_with_draws(200_000, seed=3)
    for case in report.cases:
        assert abs(case.coverage_error) < 4.5
        assert abs(case.excess_width) < 0.02
        assert case.end_difference < 0.05


def test_random_cases_reach_every_edge() -> None:
    y, moments = random_cases(3000, np.random.default_rng(0))
    assert np.any(moments.v1 == 0)
    assert np.any(moments.v2 == 0)
    assert np.any(y == moments.m1)
    assert np.any((moments.v1 == 0) & (moments.v2 == 0))
    assert np.sqrt(moments.v2.max()) > 2.9
    assert np.any(y < moments.m1)
    assert np.any(y > moments.m1)


def test_self_check_counts_what_it_cannot_prove(monkeypatch: pytest.MonkeyPatch) -> None:
    assert self_check(300, seed=1) == SelfCheckReport(300, 0)
    monkeypatch.setattr("app.maths.score.hdi.SMALL_CORRECTION", 0.05)  # accepts intervals that are far off
    monkeypatch.setattr("app.maths.score.hdi.SMALL_CHANGE", 10.0)
    assert self_check(300, seed=1).failures > 20


@pytest.mark.parametrize("index", [37, 160, 401])
def test_mpmath_finds_the_committed_row_again(index: int) -> None:
    pytest.importorskip("mpmath")
    row = list(read_reference(REFERENCE))[index]
    again = solve(row.query, index)
    assert again.low == pytest.approx(row.low, rel=1e-14)
    assert again.high == pytest.approx(row.high, rel=1e-14)
    assert (again.threshold, again.below, again.above) == pytest.approx(
        (row.threshold, row.below, row.above), rel=1e-12
    )


def test_the_reference_stands_by_itself() -> None:
    """A start that is off by a percent of the width leads mpmath to the same interval."""
    mpmath = pytest.importorskip("mpmath")
    from app.benchmark.reference import Integrals

    row = next(case for case in read_reference(REFERENCE) if case.rho == 3.0 and case.s2 == 0.5)
    low, high = sorted((row.sign * row.low, row.sign * row.high))
    found = Integrals(row.rho, row.s2).shortest(low + 0.01 * (high - low), high - 0.01 * (high - low), row.mass)
    assert [float(end) for end in found[:2]] == pytest.approx([low, high], rel=1e-12)
    assert mpmath.mp.dps == 15  # the precision of other users of mpmath is left alone


def test_the_report_names_the_worst_case() -> None:
    worst = ReferenceCase(9.6, 0.6, 0.95, 1, 1.0, 2.0, 1e-12, 2.0, 0.1, 0.9)
    assert worst.query == ReferenceQuery(9.6, 0.6, 0.95, 1)
    report = ReferenceReport(552, 2e-6, worst, 1e-12, 1e-9)
    assert not report.passed
    text = "\n".join(render(report, SelfCheckReport(10, 0), compare_with_draws(1000, seed=0), 2e-10))
    assert "rho = 9.6, s2 = 0.6" in text
    assert f"| 2.0e-06 | {END_POINT_LIMIT:.0e} |" in text
