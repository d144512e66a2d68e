import pytest

from app.domain import limits
from app.domain.limits import LIMITS, Limit


@pytest.mark.parametrize(
    ("limit", "low", "high"),
    [
        (limits.AGE, 0, 120),
        (limits.HEIGHT, 40, 250),
        (limits.WEIGHT, 1.5, 350),
        (limits.BMI, 8, 100),
        (limits.DIAMETER, 3, 120),
        (limits.DIAMETER_FROM_SCHOOL_AGE, 10, 120),
        (limits.THRESHOLD, -10, 10),
        (limits.HDI_PROBABILITY, 0.5, 0.99),
        (limits.MEASUREMENT_SD, 0, 5),
        (limits.THRESHOLDS, 1, 8),
        (limits.SUBJECT, 1, 128),
    ],
)
def test_both_ends_of_an_allowed_range_are_allowed(limit: Limit, low: float, high: float) -> None:
    assert limit.holds(low)
    assert limit.holds(high)
    assert not limit.holds(low - 1e-6)
    assert not limit.holds(high + 1e-6)
    assert limit.advisory is None


def test_an_advisory_begins_where_the_contract_says() -> None:
    assert limits.LARGE_DIAMETER.holds(39.999)
    assert not limits.LARGE_DIAMETER.holds(40.0)
    assert limits.HIGH_BMI.holds(50.0)
    assert not limits.HIGH_BMI.holds(50.001)
    assert limits.FAR_OUT.holds(-6.0)
    assert not limits.FAR_OUT.holds(-6.001)


def test_not_a_number_is_never_allowed() -> None:
    assert not any(limit.holds(float("nan")) for limit in LIMITS)


def test_the_table_holds_every_limit_once() -> None:
    named = [value for value in vars(limits).values() if isinstance(value, Limit)]
    assert list(LIMITS) == named
    assert len({(limit.field, limit.from_age_years, limit.advisory) for limit in LIMITS}) == len(LIMITS)
