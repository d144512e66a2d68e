"""Roots and quantiles: against mpmath, against the slow search, and from a start that cannot lead there."""

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from app.errors import UnverifiedResult
from app.maths.moments import Array, Moments
from app.maths.score import predictive, thresholds
from app.maths.score.canonical_form import Mask, ignore_float_warnings, spreads
from app.maths.score.roots import Mixture, increasing_root, newton_quantiles
from app.maths.score.thresholds import threshold_diameter
from tests.maths import scores


def wide_moments(n: int, seed: int) -> Moments:
    """From no uncertainty at all to s2 = 3, small ones and large ones."""
    rng = np.random.default_rng(seed)
    v1 = np.where(rng.random(n) < 0.1, 0.0, 10 ** rng.uniform(-12, 1.5, n))
    v2 = np.where(rng.random(n) < 0.5, 10 ** rng.uniform(-12, 0, n), rng.uniform(0, 3, n) ** 2)
    return Moments(rng.uniform(20, 40, n), v1, rng.normal(1.0, 0.3, n), np.where(rng.random(n) < 0.1, 0.0, v2))


def nothing_found(zeta: Array, start: Array, mixture: Mixture) -> tuple[Array, Mask]:
    return start, np.zeros(zeta.size, dtype=bool)


def test_a_mixture_of_two_has_its_quantiles() -> None:
    mixture = Mixture(np.array([[-1.0, 2.0]]), np.array([[2.0, 0.5]]), np.array([0.3, 0.7]))
    found, proved = newton_quantiles(np.array([0.4]), np.array([1.0]), mixture)
    assert proved.all()
    below = 0.3 * mpmath.ncdf((found[0] + 1.0) * 2.0) + 0.7 * mpmath.ncdf((found[0] - 2.0) * 0.5)
    assert float(below) == pytest.approx(float(mpmath.ncdf(0.4)), rel=1e-13)


def test_what_is_not_found_is_not_called_proved() -> None:
    mixture = Mixture(np.zeros((1, 2)), np.array([[1.0, 1e-6]]), np.array([0.5, 0.5]))
    with ignore_float_warnings():
        _, proved = newton_quantiles(np.array([1.0, 1.0]), np.array([1e9, np.nan]), mixture)
    assert not proved.any()


@pytest.mark.parametrize("t", [2.0, -2.0, 0.01, 10.0])
@pytest.mark.parametrize("p", [0.5, 0.025, 0.975])
def test_thresholds_are_those_of_the_slow_search(t: float, p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = wide_moments(1500, seed=4)
    fast = threshold_diameter(p, t, moments)
    monkeypatch.setattr(thresholds, "newton_quantiles", nothing_found)
    assert fast == pytest.approx(threshold_diameter(p, t, moments), rel=1e-9)


@pytest.mark.parametrize("mass", [0.5, 0.95, 0.9999])
def test_intervals_are_those_of_the_slow_search(mass: float, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = wide_moments(1500, seed=5)
    fast = predictive.interval(moments, mass)
    monkeypatch.setattr(predictive, "newton_quantiles", nothing_found)
    slow = predictive.interval(moments, mass)
    assert fast.width == pytest.approx(slow.width, rel=1e-11)


def test_people_like_those_of_a_model_need_no_slow_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Array:
        raise AssertionError("the slow search was called")

    monkeypatch.setattr(thresholds, "increasing_root", refuse)
    monkeypatch.setattr(predictive, "_rising", refuse)
    _, moments = scores.people(300, seed=6)
    threshold_diameter(np.array([0.5, 0.025, 0.975])[:, None, None], np.array([[2.0], [-2.0]]), moments)
    predictive.interval(moments)


def test_one_by_one_and_in_a_batch_the_interval_and_the_percentile_are_the_same() -> None:
    y, moments = scores.people(60, seed=7)
    interval, below = predictive.interval(moments), predictive.cdf(y, moments)
    for row in (0, 31, 59):
        one = Moments(*(column[row : row + 1] for column in (moments.m1, moments.v1, moments.m2, moments.v2)))
        alone, below_alone = predictive.interval(one), predictive.cdf(y[row : row + 1], one)
        assert alone.low[0] == pytest.approx(interval.low[row], rel=1e-12)
        assert below_alone[0] == pytest.approx(below[row], rel=1e-12)


@pytest.mark.parametrize(("v1", "v2"), [(0.1, 0.01), (1.0, 0.25), (4.0, 1.0), (0.05, 0.0025)])
def test_mpmath_agrees(v1: float, v2: float) -> None:
    """The probabilities of what was found, by adaptive quadrature with 20 digits."""
    moments = scores.person(32.0, v1, 1.0, v2)
    b, s = (float(part[0]) for part in spreads(moments, 0.0, (1,)))
    units = mpmath.e

    def expected(deviate: object) -> float:
        cuts = [-9, -4, -2, -1, 0, 1, 2, 4, 9]
        return float(mpmath.quad(lambda z: mpmath.npdf(z) * mpmath.ncdf(deviate(z)), cuts))  # type: ignore[operator]

    with mpmath.workdps(20):
        for p in (0.5, 0.025, 0.975):
            w = (mpmath.mpf(threshold_diameter(p, 2.0, moments)[0]) - 32) / units
            assert expected(lambda z, w=w: (w - 2 * mpmath.exp(s * z)) / b) == pytest.approx(p, abs=1e-11)
        r = (mpmath.mpf(predictive.interval(moments).high[0]) - 32) / units
        assert expected(lambda z: r / mpmath.hypot(b, mpmath.exp(s * z))) == pytest.approx(0.975, abs=1e-11)


Rows = NDArray[np.intp]


def bounds(n: int, reach: float) -> tuple[Array, Array]:
    return np.full(n, -reach), np.full(n, reach)


def test_every_function_gets_its_own_root() -> None:
    wanted = np.linspace(-3, 3, 41)

    def function(x: Array, rows: Rows) -> Array:
        return np.asarray(x**3 + x - (wanted[rows] ** 3 + wanted[rows]))

    assert increasing_root(function, np.zeros(41), *bounds(41, 10.0)) == pytest.approx(wanted, abs=1e-12)


def test_cliffs_and_plateaus_are_crossed() -> None:
    """A logarithm of a density falls off a cliff where it starts; a probability is flat in both tails."""
    wanted = np.array([-7.3, 0.001, 5.5])

    def cliff(x: Array, rows: Rows) -> Array:
        gap = x - wanted[rows]
        return np.where(gap < -0.01, -5e7, gap)

    def plateau(x: Array, rows: Rows) -> Array:
        return np.asarray(np.tanh(40 * (x - wanted[rows])))

    for function in (cliff, plateau):
        assert increasing_root(function, np.zeros(3), *bounds(3, 30.0)) == pytest.approx(wanted, abs=1e-12)


def test_a_function_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(UnverifiedResult, match="No root"):
        increasing_root(lambda x, rows: np.full_like(x, np.nan), np.zeros(2), *bounds(2, 1.0))
