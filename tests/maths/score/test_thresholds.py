import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from app.errors import UnverifiedResult
from app.maths.moments import Moments
from app.maths.score import normalcy
from app.maths.score.thresholds import threshold_diameter
from tests.maths import scores

PROBABILITIES = np.array([0.5, 0.025, 0.975])[:, None]


@settings(deadline=None, max_examples=60)
@given(
    p=st.floats(1e-4, 1 - 1e-4),
    t=st.floats(-10, 10),
    v1=st.floats(1e-8, 4.0),
    v2=st.one_of(st.just(0.0), st.floats(1e-10, 4.0)),
)
def test_at_this_diameter_the_threshold_is_exceeded_with_the_probability(
    p: float, t: float, v1: float, v2: float
) -> None:
    moments = scores.person(32.0, v1, 1.0, v2)
    diameter = threshold_diameter(p, t, moments)
    assert normalcy.sf(t, diameter, moments)[0] == pytest.approx(p, abs=1e-9)


def test_a_wide_f2_beside_a_sharp_f1_leaves_the_lower_quantiles_below_m1() -> None:
    moments = scores.person(32.0, 7.76e-7, 1.0, 3.49)
    diameter = threshold_diameter(1e-4, 0.0126, moments)
    assert diameter[0] < 32.0
    assert normalcy.sf(0.0126, diameter, moments)[0] == pytest.approx(1e-4, rel=1e-9)


def test_the_quantiles_are_those_of_draws() -> None:
    rng = np.random.default_rng(8)
    moments = scores.person(32.0, 0.5, 1.0, 0.04)
    drawn = rng.normal(32.0, np.sqrt(0.5), 400_000) + 2.0 * np.exp(rng.normal(1.0, 0.2, 400_000))
    for p in (0.025, 0.5, 0.975):
        assert threshold_diameter(p, 2.0, moments)[0] == pytest.approx(np.quantile(drawn, p), abs=0.02)


def test_at_threshold_zero_f1_alone_decides() -> None:
    moments = scores.person(32.0, 0.25, 1.0, 0.3)
    assert threshold_diameter(0.975, 0.0, moments)[0] == pytest.approx(32.0 + 0.5 * norm.ppf(0.975), rel=1e-12)


@pytest.mark.parametrize("t", [-3.0, 2.0])
def test_a_certain_f1_leaves_a_lognormal_distance(t: float) -> None:
    moments = scores.person(32.0, 0.0, 1.0, 0.09)
    for p in (0.025, 0.5, 0.975):
        deviate = norm.ppf(p if t > 0 else 1 - p)
        assert threshold_diameter(p, t, moments)[0] == pytest.approx(32.0 + t * np.exp(1.0 + 0.3 * deviate), rel=1e-10)


def test_without_uncertainty_every_quantile_is_the_same_diameter() -> None:
    moments = scores.person(32.0, 0.0, 1.0, 0.0)
    found = threshold_diameter(PROBABILITIES, np.array([-2.0, 0.0, 2.0]), moments)
    assert found == pytest.approx(np.tile(32.0 + np.array([-2.0, 0.0, 2.0]) * np.e, (3, 1)))


def test_quantiles_thresholds_and_people_broadcast() -> None:
    _, moments = scores.people(5, seed=9)
    found = threshold_diameter(PROBABILITIES[:, :, None], np.array([[2.0], [-2.0]]), moments)
    assert found.shape == (3, 2, 5)
    assert np.all((found[1] < found[0]) & (found[0] < found[2]))
    assert found[0, 1, 3] == pytest.approx(threshold_diameter(0.5, -2.0, moments)[3], rel=1e-12)


def test_a_probability_of_0_or_1_has_no_diameter() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        threshold_diameter(1.0, 2.0, scores.plain(0.1))


def test_impossible_moments_are_refused() -> None:
    with pytest.raises(UnverifiedResult):
        threshold_diameter(0.5, 2.0, Moments(np.array([30.0]), np.array([-1.0]), np.array([0.0]), np.array([0.1])))
