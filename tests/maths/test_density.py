import numpy as np
import pytest
from hypothesis import given, settings
from scipy.integrate import quad

from app.maths import normalcy
from app.maths.density import log_density
from app.maths.oriented import limits_allowed, oriented
from tests.maths import scores


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
    with limits_allowed():
        log_p = log_density(t, score)
    steps = np.diff(log_p[log_p > log_p.max() - 30])  # further down the integrals are exact to 1e-12 of the peak only
    falls = np.flatnonzero(steps < -1e-9)
    assert falls.size == 0 or np.all(steps[falls[0] :] < 1e-9)


def test_far_out_the_density_is_small_but_never_not_a_number() -> None:
    score = oriented(np.array([3.0, 0.0, 5.0]), np.array([1e-3, 1.0, 0.0]), np.array([0.0, 0.1, 0.1]))
    with limits_allowed():
        found = log_density(np.array([500.0, 1e6, -2.0]), score)
    assert np.all(found < -1e3)
    assert not np.isnan(found).any()
