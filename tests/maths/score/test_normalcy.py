import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import lognorm, norm

from app.errors import UnverifiedResult
from app.maths.moments import Moments
from app.maths.score import normalcy
from tests.maths import scores

WIDE = scores.person(33.0, 0.8, 1.0, 0.16)  # s1 = 0.89 mm, s2 = 0.4: taken for one another they differ much


def test_expected_score_is_the_mean_of_draws() -> None:
    drawn = scores.draws(40.0, WIDE, 1_000_000, seed=1)
    error = drawn.std() / 1000
    assert normalcy.expected_score(40.0, WIDE)[0] == pytest.approx(drawn.mean(), abs=4 * error)


def test_hdi_and_exceedance_are_those_of_draws_from_variances_not_standard_deviations() -> None:
    drawn = scores.draws(40.0, WIDE, 1_000_000, seed=2)
    interval = normalcy.hdi(40.0, WIDE)
    inside = np.mean((drawn >= interval.low) & (drawn <= interval.high))
    assert inside == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 1e6))
    for t in (2.0, -2.0, 3.0):
        share = np.mean(drawn > t)
        assert normalcy.sf(t, 40.0, WIDE)[0] == pytest.approx(share, abs=4e-3)


def test_measurement_variance_adds_to_the_variance_of_f1() -> None:
    more = Moments(WIDE.m1, WIDE.v1 + 1.5**2, WIDE.m2, WIDE.v2)
    assert normalcy.sf(2.0, 40.0, WIDE, 1.5**2) == normalcy.sf(2.0, 40.0, more)
    with_error, with_more = normalcy.hdi(40.0, WIDE, measurement_variance=1.5**2), normalcy.hdi(40.0, more)
    assert (with_error.low, with_error.high) == (with_more.low, with_more.high)


def test_without_uncertainty_of_f2_the_score_is_normal() -> None:
    moments = scores.person(30.0, 0.25, np.log(2.0), 0.0)
    score, spread = 2.5, 0.25
    for t in (-1.0, 2.0, 2.5, 3.1):
        assert normalcy.cdf(t, 35.0, moments)[0] == pytest.approx(norm.cdf(t, score, spread), rel=1e-11)
        assert normalcy.sf(t, 35.0, moments)[0] == pytest.approx(norm.sf(t, score, spread), rel=1e-11)
    interval = normalcy.hdi(35.0, moments)
    assert interval.low[0] == pytest.approx(score - norm.ppf(0.975) * spread, abs=1e-10)
    assert interval.high[0] == pytest.approx(score + norm.ppf(0.975) * spread, abs=1e-10)


@pytest.mark.parametrize("s2", [1e-3, 0.1, 0.7, 3.0])
def test_without_uncertainty_of_f1_the_score_is_lognormal(s2: float) -> None:
    moments = scores.person(30.0, 0.0, np.log(2.0), s2**2)
    exact = lognorm(s2, scale=2.5)
    for t in (2.4, 2.5, 2.7):
        assert normalcy.cdf(t, 35.0, moments)[0] == pytest.approx(exact.cdf(t), abs=3e-12)
        assert normalcy.pdf(t, 35.0, moments)[0] == pytest.approx(exact.pdf(t), rel=1e-9)
    assert normalcy.cdf(0.0, 35.0, moments)[0] == 0.0
    interval = normalcy.hdi(35.0, moments)
    below, above = np.log(interval.low[0] / 2.5) / s2, np.log(interval.high[0] / 2.5) / s2
    assert norm.cdf(above) - norm.cdf(below) == pytest.approx(0.95, abs=1e-9)
    assert below + above == pytest.approx(-2 * s2, abs=1e-6)  # equal density: symmetric about the mode of log t


@pytest.mark.parametrize("s2", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("mass", [0.95, 0.8])
def test_a_vanishing_uncertainty_of_f1_changes_nothing_suddenly(s2: float, mass: float) -> None:
    limit = normalcy.hdi(35.0, scores.person(30.0, 0.0, 0.5, s2**2), mass)
    for v1 in (1e-14, 1e-20, 1e-60, 1e-300):
        near = normalcy.hdi(35.0, scores.person(30.0, v1, 0.5, s2**2), mass)
        assert abs(near.low - limit.low) < 1e-8 * limit.width
        assert abs(near.high - limit.high) < 1e-8 * limit.width
        assert normalcy.sf(2.0, 35.0, scores.person(30.0, v1, 0.5, s2**2))[0] == pytest.approx(
            normalcy.sf(2.0, 35.0, scores.person(30.0, 0.0, 0.5, s2**2))[0], abs=1e-10
        )


def test_a_vanishing_uncertainty_of_f2_changes_nothing_suddenly() -> None:
    limit = normalcy.hdi(35.0, scores.person(30.0, 0.25, 0.5, 0.0))
    for v2 in (1e-20, 1e-60, 1e-300):
        near = normalcy.hdi(35.0, scores.person(30.0, 0.25, 0.5, v2))
        assert abs(near.low - limit.low) < 1e-8 * limit.width
        assert abs(near.high - limit.high) < 1e-8 * limit.width


@pytest.mark.parametrize("y", [24.0, 30.0, 36.0])
def test_without_any_uncertainty_the_score_is_a_point(y: float) -> None:
    moments = scores.person(30.0, 0.0, np.log(3.0), 0.0)
    score = (y - 30.0) / 3.0
    around = np.array([score - 1e-9, score + 1e-9])
    for find in (normalcy.hdi, normalcy.safe_hdi):
        interval = find(y, moments)
        assert interval.low[0] == interval.high[0] == pytest.approx(score)
    assert normalcy.cdf(around, y, moments).tolist() == [0.0, 1.0]
    assert normalcy.sf(around, y, moments).tolist() == [1.0, 0.0]
    assert normalcy.pdf(around, y, moments).tolist() == [0.0, 0.0]


def test_a_diameter_at_the_expected_one_scores_symmetrically() -> None:
    for s2 in (0.0, 0.1, 1.0, 3.0):
        interval = normalcy.hdi(0.0, scores.plain(s2))
        assert interval.low[0] == pytest.approx(-interval.high[0], rel=1e-8)
        assert normalcy.sf(0.0, 0.0, scores.plain(s2))[0] == pytest.approx(0.5, abs=1e-11)


def test_a_certain_f1_at_the_expected_diameter_is_the_point_zero() -> None:
    interval = normalcy.hdi(30.0, scores.person(30.0, 0.0, 1.0, 0.01))
    assert (interval.low[0], interval.high[0]) == (0.0, 0.0)


def test_a_spread_lost_among_the_digits_of_the_score_still_gives_an_interval_around_it() -> None:
    for v1, v2 in ((1e-30, 1e-30), (1e-20, 0.0), (1e-14, 1e-14), (1e-10, 1e-15)):
        moments = scores.person(30.0, v1, 1.1, v2)
        for mass in (0.5, 0.95):
            interval = normalcy.hdi(36.0, moments, mass)
            assert interval.low[0] <= 6.0 * np.exp(-1.1) <= interval.high[0]


@settings(deadline=None, max_examples=60)
@given(rho=scores.rho, s2=scores.s2, mass=scores.mass)
def test_the_interval_holds_its_mass(rho: float, s2: float, mass: float) -> None:
    interval = normalcy.hdi(rho, scores.plain(s2), mass)
    held = normalcy.sf(interval.low, rho, scores.plain(s2)) - normalcy.sf(interval.high, rho, scores.plain(s2))
    assert held[0] == pytest.approx(mass, abs=1e-8)


@settings(deadline=None, max_examples=60)
@given(rho=scores.rho, s2=scores.s2, mass=scores.mass)
def test_the_other_side_of_the_expected_diameter_mirrors_the_interval(rho: float, s2: float, mass: float) -> None:
    above, below = normalcy.hdi(rho, scores.plain(s2), mass), normalcy.hdi(-rho, scores.plain(s2), mass)
    assert below.low[0] == pytest.approx(-above.high[0], abs=1e-9 * above.width[0])
    assert below.high[0] == pytest.approx(-above.low[0], abs=1e-9 * above.width[0])


@settings(deadline=None, max_examples=60)
@given(rho=scores.rho, s2=scores.s2, t=st.floats(-10, 10))
def test_both_tails_add_up_to_one_and_mirror(rho: float, s2: float, t: float) -> None:
    here = normalcy.exceedance(t, rho, scores.plain(s2))
    there = normalcy.exceedance(-t, -rho, scores.plain(s2))
    assert 0.0 <= here.below[0] <= 1.0
    assert here.below[0] + here.above[0] == pytest.approx(1.0, abs=1e-15)
    assert there.above[0] == pytest.approx(here.below[0], rel=1e-9, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(rho=scores.rho, s2=scores.s2, mass=scores.mass, unit=st.floats(0.01, 100.0), sign=scores.sign)
def test_the_score_has_no_unit(rho: float, s2: float, mass: float, unit: float, sign: float) -> None:
    """Millimetres or inches: m1, s1 and y scale, m2 shifts by the logarithm, and NS stays."""
    moments = scores.person(20.0, 0.09, 1.2, s2**2)
    scaled = scores.person(20.0 * unit, 0.09 * unit**2, 1.2 + np.log(unit), s2**2)
    y = 20.0 + sign * rho * 0.3
    here, there = normalcy.hdi(y, moments, mass), normalcy.hdi(y * unit, scaled, mass)
    slack = 1e-8 * here.width[0] + 1e-10 * abs(here.high[0])
    assert there.low[0] == pytest.approx(here.low[0], abs=slack)
    assert there.high[0] == pytest.approx(here.high[0], abs=slack)


@settings(deadline=None, max_examples=40)
@given(s2=scores.s2, t=st.floats(-5, 5))
@pytest.mark.req("REQ-025")
def test_a_larger_diameter_exceeds_more_surely(s2: float, t: float) -> None:
    above = normalcy.sf(t, np.linspace(-30, 30, 61), scores.plain(s2))
    assert all(later >= earlier - 1e-11 for earlier, later in pairwise(above))


@settings(deadline=None, max_examples=40)
@given(rho=scores.rho, s2=scores.s2)
def test_the_distribution_function_rises_from_0_to_1(rho: float, s2: float) -> None:
    t = (rho + 12.0) * np.array([-1e20, -100, -3, -1, -0.1, 0, 0.1, 0.5, 0.9, 1, 1.1, 2, 10, 1e3, 1e20])
    below = normalcy.cdf(t, rho, scores.plain(s2))
    assert below[0] < 1e-10
    assert below[-1] > 1 - 1e-10
    assert np.all(np.diff(below) >= -1e-11)


def test_hdi_grows_with_its_mass() -> None:
    for rho, s2 in ((0.0, 0.3), (2.0, 2.0), (30.0, 0.1)):
        widths = [normalcy.hdi(rho, scores.plain(s2), mass).width[0] for mass in (0.1, 0.5, 0.9, 0.95, 0.99, 0.999)]
        assert all(narrow < wide for narrow, wide in pairwise(widths))


def test_one_person_scores_as_in_a_batch() -> None:
    y, moments = scores.people(300, seed=3)
    t = np.array([[2.0], [-2.0]])
    for mass in (0.95, 0.9):
        batch, tails = normalcy.hdi(y, moments, mass), normalcy.exceedance(t, y, moments)
        for row in range(0, 300, 7):
            one = scores.person(moments.m1[row], moments.v1[row], moments.m2[row], moments.v2[row])
            alone = normalcy.hdi(y[row], one, mass)
            assert alone.low[0] == pytest.approx(batch.low[row], rel=1e-10)
            assert alone.high[0] == pytest.approx(batch.high[row], rel=1e-10)
            assert normalcy.exceedance(t, y[row], one).above[:, 0] == pytest.approx(tails.above[:, row], rel=1e-10)


def test_the_same_question_gets_the_same_bits() -> None:
    y, moments = scores.people(500, seed=4)
    first, second = normalcy.hdi(y, moments), normalcy.hdi(y, moments)
    assert first.low.tobytes() == second.low.tobytes()
    assert first.high.tobytes() == second.high.tobytes()
    assert normalcy.sf(2.0, y, moments).tobytes() == normalcy.sf(2.0, y, moments).tobytes()


def test_thresholds_broadcast_against_people() -> None:
    y, moments = scores.people(7, seed=5)
    t = np.array([2.0, 0.0, -2.0])[:, None]
    above = normalcy.sf(t, y, moments)
    assert above.shape == (3, 7)
    for row, threshold in enumerate((2.0, 0.0, -2.0)):
        assert above[row] == pytest.approx(normalcy.sf(threshold, y, moments), rel=1e-12)


def test_context_width_is_the_width_two_spreads_out_and_ignores_the_diameter() -> None:
    _, moments = scores.people(20, seed=6)
    expected = normalcy.hdi(moments.m1 + 2 * np.exp(moments.m2), moments).width
    assert normalcy.context_width(moments).tolist() == expected.tolist()
    unsure = Moments(moments.m1, 4 * moments.v1, moments.m2, 4 * moments.v2)
    assert np.all(normalcy.context_width(unsure) > normalcy.context_width(moments))


@pytest.mark.parametrize(
    "moments",
    [
        scores.person(np.nan, 1.0, 0.0, 0.1),
        scores.person(30.0, -1.0, 0.0, 0.1),
        scores.person(30.0, 1.0, np.inf, 0.1),
        scores.person(30.0, 1.0, 0.0, -0.1),
        scores.person(30.0, 1.0, 0.0, 1e4),
    ],
)
def test_impossible_moments_are_refused_alone_and_in_a_batch(moments: Moments) -> None:
    many = Moments(*(np.repeat(getattr(moments, name), 9) for name in ("m1", "v1", "m2", "v2")))
    for asked in (moments, many):
        with pytest.raises(UnverifiedResult):
            normalcy.hdi(35.0, asked)
        with pytest.raises(UnverifiedResult):
            normalcy.sf(2.0, 35.0, asked)


@pytest.mark.parametrize(
    "person", [(np.nan, 30.0, 1.0, 0.1), (40.0, np.nan, 1.0, 0.1), (40.0, 30.0, np.nan, 0.1), (40.0, 30.0, 1.0, np.nan)]
)
def test_an_expected_score_of_what_is_no_number_is_refused(person: tuple[float, float, float, float]) -> None:
    y, m1, m2, v2 = person
    with pytest.raises(UnverifiedResult, match="finite"):
        normalcy.expected_score(np.array([35.0, y]), Moments(*(np.full(2, each) for each in (m1, 1.0, m2, v2))))


@pytest.mark.parametrize("mass", [0.0, 1.0, -0.5, float("nan")])
def test_a_mass_outside_0_to_1_is_refused(mass: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        normalcy.hdi(35.0, WIDE, mass)


def test_nobody_gets_no_score() -> None:
    nobody = Moments(*(np.empty(0) for _ in range(4)))
    assert normalcy.hdi(np.empty(0), nobody).low.shape == (0,)
    assert normalcy.sf(np.array([[2.0], [-2.0]]), np.empty(0), nobody).shape == (2, 0)
    assert normalcy.context_width(nobody).shape == (0,)


def test_memory_grows_with_the_people_and_not_with_their_nodes() -> None:
    y, moments = scores.people(60_000, seed=12)
    normalcy.hdi(y[:100], Moments(moments.m1[:100], moments.v1[:100], moments.m2[:100], moments.v2[:100]))
    tracemalloc.start()
    normalcy.hdi(y, moments)
    normalcy.sf(2.0, y, moments)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60_000 * 8 * 60  # 60 numbers a person; 24 nodes at both ends in one piece would be over 200
