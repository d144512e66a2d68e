import numpy as np
import pytest
from hypothesis import given, settings
from scipy.integrate import quad
from scipy.stats import lognorm, norm

from app.maths.score import normalcy
from app.maths.score.canonical_form import ignore_float_warnings, oriented
from app.maths.score.distribution import Tails, log_density, normal_deviate, tails, tails_of_one
from tests.maths import scores


def both(t: float, a: float, b: float, s: float) -> tuple[float, float]:
    with ignore_float_warnings():
        found = tails(np.array([t]), oriented(np.array([a]), np.array([b]), np.array([s])))
    return float(found.below[0]), float(found.above[0])


@pytest.mark.parametrize("z", [-9.0, -7.0, -4.5, -1.0, 0.5, 3.0, 5.0, 9.0])
def test_a_normal_tail_keeps_its_digits(z: float) -> None:
    below, above = both(2.0 + 0.3 * z, 2.0, 0.3, 0.0)
    assert below == pytest.approx(norm.cdf(z), rel=1e-10)
    assert above == pytest.approx(norm.sf(z), rel=1e-10)


@pytest.mark.parametrize("z", [-9.0, -7.0, -4.5, -1.0, 0.5, 3.0, 5.0, 9.0])
@pytest.mark.parametrize("s", [1e-4, 0.1, 2.0])
def test_a_lognormal_tail_keeps_its_digits(z: float, s: float) -> None:
    t = 2.0 * np.exp(s * z)
    below, above = both(t, 2.0, 0.0, s)
    assert below == pytest.approx(lognorm.cdf(t, s, scale=2.0), rel=1e-9)
    assert above == pytest.approx(lognorm.sf(t, s, scale=2.0), rel=1e-9)


def test_the_distribution_is_smooth_where_the_way_of_integration_changes() -> None:
    """It turns from Z2 to Z1 at rho = 9.5, and at s²rho(rho + 4) = 1."""
    for s in (0.12, 0.5, 2.0):
        for t in (6.0, 9.5, 15.0):
            before, _ = both(t, 9.5 - 1e-12, 1.0, s)
            after, _ = both(t, 9.5 + 1e-12, 1.0, s)
            assert after == pytest.approx(before, abs=1e-11)
    turn = 1 / np.sqrt(20 * 24)
    for t in (19.0, 20.0, 21.5):
        before, _ = both(t, 20.0, 1.0, turn - 1e-12)
        after, _ = both(t, 20.0, 1.0, turn + 1e-12)
        assert after == pytest.approx(before, abs=1e-11)


def test_digits_survive_where_the_spread_is_tiny_beside_the_score() -> None:
    """rho = 1e9: t - a must not drown in a."""
    a, b = 3.0, 3e-9
    t = a + 2.0 * b
    below, _ = both(t, a, b, 0.0)
    assert below == pytest.approx(norm.cdf((t - a) / b), rel=1e-12)
    below, _ = both(t, a, 0.0, 1e-9)
    assert below == pytest.approx(norm.cdf(np.log1p((t - a) / a) / 1e-9), rel=1e-9)
    b, s = 3e-12, 5e-13
    t = a + 2.0 * np.hypot(b, s * a)
    below, _ = both(t, a, b, s)
    assert below == pytest.approx(norm.cdf((t - a) / np.hypot(b, s * a)), rel=1e-8)


def test_one_person_has_the_tails_of_a_batch() -> None:
    rng = np.random.default_rng(0)
    a, b, s = 10 ** rng.uniform(-2, 3, 400), np.ones(400), rng.uniform(0, 3, 400)
    t = a * rng.uniform(-1, 3, 400)
    score = oriented(a, b, s)
    with ignore_float_warnings():
        many = tails(t, score)
        alone = np.array([tails_of_one(t.item(row), score.of_one(row)) for row in range(400)])
    assert alone[:, 0] == pytest.approx(many.below, rel=1e-10, abs=1e-30)
    assert alone[:, 1] == pytest.approx(many.above, rel=1e-10, abs=1e-30)


def test_normal_deviate_takes_the_smaller_tail() -> None:
    deviate = normal_deviate(Tails(np.array([1e-30, 0.5, 1.0, 0.0]), np.array([1.0, 0.5, 1e-30, 1.0])))
    assert deviate == pytest.approx([norm.ppf(1e-30), 0.0, -norm.ppf(1e-30), -38.0])


@pytest.mark.parametrize(("rho", "s2"), [(0.0, 0.3), (2.0, 1.0), (9.0, 0.5), (30.0, 0.1), (1000.0, 0.01), (5.0, 3.0)])
def test_the_density_is_the_slope_of_the_distribution_function(rho: float, s2: float) -> None:
    moments = scores.plain(s2)
    interval = normalcy.hdi(rho, moments)
    for share in (0.1, 0.5, 0.9):
        t = interval.low + share * interval.width
        step = 1e-4 * interval.width
        slope = (normalcy.cdf(t + step, rho, moments) - normalcy.cdf(t - step, rho, moments)) / (2 * step)
        assert normalcy.pdf(t, rho, moments)[0] == pytest.approx(slope[0], rel=1e-4)


@pytest.mark.parametrize(("rho", "s2"), [(0.0, 0.3), (2.0, 0.8), (30.0, 0.1)])
def test_the_density_integrates_to_one(rho: float, s2: float) -> None:
    moments = scores.plain(s2)
    ends = normalcy.hdi(rho, moments, 0.9999)
    points = np.linspace(ends.low[0], ends.high[0], 9)
    held, _ = quad(lambda t: float(normalcy.pdf(t, rho, moments)[0]), ends.low[0], ends.high[0], points=points)
    assert held == pytest.approx(0.9999, abs=1e-8)


@settings(deadline=None, max_examples=50)
@given(rho=scores.rho, s2=scores.s2)
def test_the_density_has_one_mode(rho: float, s2: float) -> None:
    """The solver stands on it: once it falls it does not rise again, on scales from the finest to the tail."""
    score = oriented(*(np.full(1501, value) for value in (rho, 1.0, s2)))
    fine = np.sinh(np.linspace(-30, 30, 1001)) * np.exp(-s2 * (s2 + 4))
    t = np.sort(np.concatenate([fine, rho + np.linspace(-6, 6, 500) * np.hypot(1.0, min(rho * s2, rho / 6))]))
    with ignore_float_warnings():
        log_p = log_density(t, score)
    steps = np.diff(log_p[log_p > log_p.max() - 30])  # further down the integrals are exact to 1e-12 of the peak only
    falls = np.flatnonzero(steps < -1e-9)
    assert falls.size == 0 or np.all(steps[falls[0] :] < 1e-9)


def test_far_out_the_density_is_small_but_never_not_a_number() -> None:
    score = oriented(np.array([3.0, 0.0, 5.0]), np.array([1e-3, 1.0, 0.0]), np.array([0.0, 0.1, 0.1]))
    with ignore_float_warnings():
        found = log_density(np.array([500.0, 1e6, -2.0]), score)
    assert np.all(found < -1e3)
    assert not np.isnan(found).any()
