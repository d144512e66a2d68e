import pytest

from app.domain import limits
from app.domain.limits import Limit, diameter_limit


@pytest.mark.parametrize(
    ("limit", "low", "high"),
    [
        (limits.AGE, 0, 120),
        (limits.HEIGHT, 40, 250),
        (limits.WEIGHT, 1.5, 350),
        (limits.BMI, 8, 100),
        (limits.DIAMETER, 3, 120),
        (limits.DIAMETER_FROM_SCHOOL_AGE, 10, 120),
    ],
)
def test_both_ends_of_an_allowed_range_are_allowed(limit: Limit, low: float, high: float) -> None:
    assert limit.holds(low)
    assert limit.holds(high)
    assert not limit.holds(low - 1e-6)
    assert not limit.holds(high + 1e-6)
    assert not limit.holds(float("nan"))
    assert limit.advisory is None


def test_an_advisory_begins_where_the_contract_says() -> None:
    assert limits.LARGE_DIAMETER.holds(39.999)
    assert not limits.LARGE_DIAMETER.holds(40.0)
    assert limits.HIGH_BMI.holds(50.0)
    assert not limits.HIGH_BMI.holds(50.001)
    assert limits.FAR_OUT.holds(-6.0)
    assert not limits.FAR_OUT.holds(-6.001)
    assert [limit.advisory for limit in limits.ADVISORY] == ["absolute_diameter", "bmi_high", "far_out"]


def test_the_smallest_diameter_depends_on_the_age() -> None:
    assert diameter_limit(4.99) is limits.DIAMETER
    assert diameter_limit(5.0) is limits.DIAMETER_FROM_SCHOOL_AGE
    assert diameter_limit(float("nan")) is limits.DIAMETER
