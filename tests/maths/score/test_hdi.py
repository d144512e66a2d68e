from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import ndtri

from app.benchmark.accuracy import EXCEEDANCE_LIMIT, check_reference, self_check, shortest_window
from app.benchmark.reference import read_reference
from app.errors import UnverifiedResult
from app.maths.score import hdi, hdi_search, normalcy
from app.maths.score.canonical_form import Oriented, ignore_float_warnings, oriented
from app.maths.score.hdi import LARGEST_TABLED_S, approximate_ends, refine
from app.maths.score.hdi_search import proven
from tests.maths import scores

REFERENCE = Path(__file__).parent.parent / "reference_hdi.csv"


def score(rho: float, s2: float) -> Oriented:
    return oriented(np.array([rho]), np.array([1.0]), np.array([s2]))


@pytest.mark.slow
@pytest.mark.req("REQ-020")
def test_intervals_and_exceedances_are_those_of_mpmath() -> None:
    report = check_reference(REFERENCE)
    assert report.cases >= 500
    assert report.worst_end < 1e-8  # widths; 1e-6 is promised
    assert report.worst_exceedance < EXCEEDANCE_LIMIT
    assert report.worst_relative < 1e-4


def test_the_reference_spans_what_is_promised() -> None:
    cases = list(read_reference(REFERENCE))
    assert {0.0, 1e4} <= {case.rho for case in cases}
    assert {1e-6, 3.0} <= {case.s2 for case in cases}
    assert {0.01, 0.5, 0.95, 0.99, 0.9999} <= {case.mass for case in cases}
    assert {-1, 1} == {case.sign for case in cases}
    assert max(case.last_correction for case in cases) < 1e-9


@pytest.mark.slow
def test_no_random_case_goes_unproven(pytestconfig: pytest.Config) -> None:
    assert self_check(1000 * pytestconfig.getoption("--repetitions"), seed=7).failures == 0


@settings(deadline=None, max_examples=40)
@given(rho=scores.rho, s2=scores.s2, mass=scores.mass, sign=scores.sign)
@pytest.mark.slow
def test_the_fast_way_finds_what_the_safe_way_finds(rho: float, s2: float, mass: float, sign: float) -> None:
    moments = scores.plain(s2)
    fast, safe = normalcy.hdi(sign * rho, moments, mass), normalcy.safe_hdi(sign * rho, moments, mass)
    # The density hardly varies over an interval of 1%, which requests cannot ask for: its ends are less certain.
    tolerance = (2e-8 if mass >= 0.05 else 1e-6) * safe.width[0]
    assert fast.low[0] == pytest.approx(safe.low[0], abs=tolerance)
    assert fast.high[0] == pytest.approx(safe.high[0], abs=tolerance)


@pytest.mark.parametrize(("rho", "s2"), [(0.0, 3.0), (0.3, 3.0), (1.0, 2.0), (3.0, 3.0), (5.0, 1.0), (9.0, 2.0)])
def test_no_other_interval_of_the_mass_is_shorter(rho: float, s2: float) -> None:
    """A lattice of equally probable draws, sorted: the shortest of all its windows, wherever it lies."""
    normal = ndtri((np.arange(1500) + 0.5) / 1500)
    lattice = np.sort(((rho - normal)[:, None] * np.exp(-s2 * normal)).ravel())
    ours, best = normalcy.hdi(rho, scores.plain(s2)), shortest_window(lattice, 0.95)
    assert ours.width[0] == pytest.approx(best.width[0], rel=5e-3)
    assert abs(ours.low[0] - best.low[0]) < 2e-2 * ours.width[0]


def test_every_shifted_interval_of_the_mass_is_longer() -> None:
    for rho, s2 in ((0.5, 1.5), (4.0, 0.8), (40.0, 0.2)):
        moments = scores.plain(s2)
        ours = normalcy.hdi(rho, moments, 0.9)
        for shift in (-0.02, -0.002, 0.002, 0.02):
            low = ours.low + shift * ours.width
            gained = normalcy.cdf(low + ours.width, rho, moments) - normalcy.cdf(low, rho, moments)
            assert gained[0] < 0.9


def test_the_table_starts_close_wherever_rho_lies() -> None:
    rng = np.random.default_rng(2)
    s2, rho = rng.uniform(0, LARGEST_TABLED_S, 500), np.concatenate([10 ** rng.uniform(-2, 8, 499), [0.0]])
    cases = oriented(rho, np.ones(500), s2)
    with ignore_float_warnings():
        start, exact = hdi.starting_table().ends(cases), hdi.shortest_ends(cases, 0.95)
    error = np.abs(start - exact).max(axis=0) / (exact[1] - exact[0])
    assert error.max() < 2e-4
    assert np.median(error) < 1e-6


def test_one_correction_from_the_table_verifies_ordinary_people() -> None:
    y, moments = scores.people(2000, seed=11)
    cases = oriented(np.abs(y - moments.m1), np.sqrt(moments.v1), np.sqrt(moments.v2))
    with ignore_float_warnings():
        _, verified = refine(hdi.starting_table().ends(cases), cases, 0.95, steps=1)
    assert verified.mean() > 0.99


def test_a_poor_start_is_refined_or_not_verified_but_never_wrong() -> None:
    rng = np.random.default_rng(5)
    cases = oriented(10 ** rng.uniform(-1, 3, 800), np.ones(800), rng.uniform(0, 1, 800))
    with ignore_float_warnings():
        exact = hdi.shortest_ends(cases, 0.95)
        width = exact[1] - exact[0]
        start = exact + rng.normal(0, 0.3, (2, 800)) * width
        found, verified = refine(start, cases, 0.95)
    assert verified.any()
    assert np.all(np.abs(found - exact)[:, verified] < 1e-8 * width[verified])


def test_a_single_step_proves_what_it_claims() -> None:
    """Whatever one correction verifies is within 1e-8 widths, however far the start was off."""
    rng = np.random.default_rng(6)
    cases = oriented(10 ** rng.uniform(-1, 3, 3000), np.ones(3000), rng.uniform(0, 1, 3000))
    with ignore_float_warnings():
        exact = hdi.shortest_ends(cases, 0.95)
        width = exact[1] - exact[0]
        start = exact + rng.normal(0, 1, (2, 3000)) * 10 ** rng.uniform(-8, -2, 3000) * width
        found, verified = refine(start, cases, 0.95, steps=1)
    assert 0.2 < verified.mean() < 0.9
    assert np.all(np.abs(found - exact)[:, verified] < 1e-8 * width[verified])


def test_the_proof_refuses_intervals_that_are_shifted_or_of_another_mass() -> None:
    cases = score(3.0, 0.5)
    with ignore_float_warnings():
        exact = hdi.shortest_ends(cases, 0.95)
        width = exact[1] - exact[0]
        assert proven(exact, cases, 0.95, 1e-6).all()
        assert not proven(exact + 1e-5 * width, cases, 0.95, 1e-6).any()
        assert not proven(exact * np.array([[1.0], [1.00001]]), cases, 0.95, 1e-6).any()
        assert not proven(exact, cases, 0.95001, 1e-6).any()


def test_an_answer_that_nothing_proves_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdi_search, "proven", lambda ends, *_: np.zeros(ends.shape[1], dtype=bool))
    with pytest.raises(UnverifiedResult, match="not proven"):
        normalcy.safe_hdi(3.0, scores.plain(0.5))


def test_the_start_is_exact_in_both_limits() -> None:
    with ignore_float_warnings():
        normal = approximate_ends(score(3.0, 0.0), 0.9)[:, 0]
        lognormal = approximate_ends(oriented(np.array([2.0]), np.array([0.0]), np.array([0.7])), 0.9)[:, 0]
    assert normal == pytest.approx([3.0 - ndtri(0.95), 3.0 + ndtri(0.95)], rel=1e-12)
    exact = normalcy.hdi(2.0, scores.person(0.0, 0.0, 0.0, 0.49), 0.9)
    assert lognormal == pytest.approx([exact.low[0], exact.high[0]], rel=1e-9)
