import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from app.errors import UnverifiedResult
from app.maths.moments import Moments
from app.maths.score import predictive
from tests.maths import scores

WIDE = scores.person(33.0, 0.8, 1.0, 0.16)


def test_the_distribution_is_that_of_drawn_diameters() -> None:
    rng = np.random.default_rng(3)
    spread = np.sqrt(0.8 + np.exp(2 * rng.normal(1.0, 0.4, 500_000)))
    for y in (28.0, 33.0, 40.0):
        assert predictive.cdf(y, WIDE)[0] == pytest.approx(norm.cdf((y - 33.0) / spread).mean(), abs=5e-4)


@settings(deadline=None, max_examples=50)
@given(
    v1=st.one_of(st.just(0.0), st.floats(0.0, 4.0)),
    v2=st.one_of(st.just(0.0), st.floats(0.0, 9.0)),
    mass=st.floats(0.01, 0.9999),
)
def test_the_interval_is_central_and_holds_its_mass(v1: float, v2: float, mass: float) -> None:
    moments = scores.person(33.0, v1, 1.0, v2)
    interval = predictive.interval(moments, mass)
    assert predictive.cdf(interval.high, moments)[0] == pytest.approx(0.5 + 0.5 * mass, abs=1e-10)
    assert predictive.cdf(interval.low, moments)[0] == pytest.approx(0.5 - 0.5 * mass, abs=1e-10)


def test_with_a_certain_spread_it_is_normal() -> None:
    moments = scores.person(33.0, 1.75, np.log(1.5), 0.0)
    interval = predictive.interval(moments)
    assert interval.high[0] == pytest.approx(33.0 + 2.0 * norm.ppf(0.975), rel=1e-11)
    assert predictive.cdf(30.0, moments)[0] == pytest.approx(norm.cdf(-1.5), abs=1e-11)
    assert predictive.log_density(30.0, moments)[0] == pytest.approx(norm.logpdf(30.0, 33.0, 2.0), abs=1e-10)


@pytest.mark.parametrize("y", [33.0, 36.0, 45.0, 120.0, 3.0])
def test_the_log_density_is_that_of_the_mixture(y: float) -> None:
    def integrand(z: float) -> float:
        return float(norm.pdf(z) * norm.pdf(y, 33.0, np.sqrt(0.8 + np.exp(2 * (1.0 + 0.4 * z)))))

    exact, _ = quad(integrand, -14, 14, epsabs=0, epsrel=1e-11, limit=400)
    assert predictive.log_density(y, WIDE)[0] == pytest.approx(np.log(exact), abs=1e-8)


def test_an_uncertain_spread_has_heavier_tails() -> None:
    sure = scores.person(33.0, 0.8, 1.0, 0.0)
    assert predictive.interval(WIDE).width[0] > predictive.interval(sure).width[0]
    assert predictive.log_density(60.0, WIDE)[0] > predictive.log_density(60.0, sure)[0]


def test_many_people_are_worked_as_one_by_one() -> None:
    y, moments = scores.people(40, seed=10)
    together = predictive.interval(moments)
    for row in (0, 17, 39):
        one = scores.person(moments.m1[row], moments.v1[row], moments.m2[row], moments.v2[row])
        assert predictive.interval(one).high[0] == pytest.approx(together.high[row], rel=1e-12)
        assert predictive.cdf(y[row], one)[0] == pytest.approx(predictive.cdf(y, moments)[row], rel=1e-11)


def test_impossible_moments_are_refused() -> None:
    with pytest.raises(UnverifiedResult):
        predictive.interval(scores.person(33.0, -1.0, 1.0, 0.1))
    with pytest.raises(UnverifiedResult):
        predictive.cdf(33.0, scores.person(33.0, 1.0, np.nan, 0.1))


@pytest.mark.parametrize(
    ("y", "m1"), [(np.nan, 33.0), (np.inf, 33.0), (33.0, np.nan), (33.0, -np.inf)], ids=lambda value: f"{value:g}"
)
def test_a_diameter_or_an_expectation_that_is_not_finite_is_refused(y: float, m1: float) -> None:
    reading, moments = np.array([30.0, y]), Moments(np.array([33.0, m1]), np.ones(2), np.ones(2), np.full(2, 0.1))
    for ask in (predictive.cdf, predictive.log_density):
        with pytest.raises(UnverifiedResult, match="finite"):
            ask(reading, moments)


def test_an_interval_around_an_expectation_that_is_not_finite_is_refused() -> None:
    with pytest.raises(UnverifiedResult, match="finite"):
        predictive.interval(scores.person(np.nan, 1.0, 1.0, 0.1))
