import numpy as np
import pytest
from scipy.stats import lognorm, norm

from app.maths.oriented import limits_allowed, oriented
from app.maths.tails import Tails, normal_deviate, tails, tails_of_one


def both(t: float, a: float, b: float, s: float) -> tuple[float, float]:
    with limits_allowed():
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
    with limits_allowed():
        many = tails(t, score)
        alone = np.array([tails_of_one(t.item(row), score.of_one(row)) for row in range(400)])
    assert alone[:, 0] == pytest.approx(many.below, rel=1e-10, abs=1e-30)
    assert alone[:, 1] == pytest.approx(many.above, rel=1e-10, abs=1e-30)


def test_normal_deviate_takes_the_smaller_tail() -> None:
    deviate = normal_deviate(Tails(np.array([1e-30, 0.5, 1.0, 0.0]), np.array([1.0, 0.5, 1e-30, 1.0])))
    assert deviate == pytest.approx([norm.ppf(1e-30), 0.0, -norm.ppf(1e-30), -38.0])
