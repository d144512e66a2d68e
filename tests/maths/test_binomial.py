import pytest
from scipy.stats import binom

from app.maths.binomial import count_limits, shares_found


@pytest.mark.parametrize("people", [1, 40, 100, 1110, 20_000])
@pytest.mark.parametrize("error", [0.04, 0.01 / 15])
def test_counts_outside_the_limits_are_as_rare_as_asked_and_the_next_inside_are_not(people: int, error: float) -> None:
    low, high = count_limits(people, 0.025, error)
    assert binom.cdf(low - 1, people, 0.025) <= error / 2.0 < binom.cdf(low, people, 0.025)
    assert binom.sf(high, people, 0.025) <= error / 2.0 < binom.sf(high - 1, people, 0.025)


def test_the_shares_found_leave_the_limits_with_the_chance_named() -> None:
    least, most = shares_found(1110, 12, 47, 0.9)
    assert least is not None
    assert most is not None
    assert binom.cdf(11, 1110, least) == pytest.approx(0.9)
    assert binom.sf(47, 1110, most) == pytest.approx(0.9)


def test_where_no_count_is_too_small_no_share_is() -> None:
    assert shares_found(147, 0, 12, 0.9)[0] is None
    assert shares_found(10, 0, 10, 0.9) == (None, None)
