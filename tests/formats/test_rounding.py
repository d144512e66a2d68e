import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.formats.rounding import rounded, significant
from app.schemas.answers import Exceedance, Hdi, Score

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@pytest.mark.parametrize(
    ("value", "expected"), [(1.23456789049, 1.23456789), (123456789.6, 123456790.0), (1e-20 / 3, 3.33333333e-21)]
)
def test_nine_digits_remain(value: float, expected: float) -> None:
    assert significant(value) == expected


@given(finite, finite)
def test_rounding_keeps_order_and_stays_close(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert significant(low) <= significant(high)
    assert significant(one) == pytest.approx(one, rel=5.1e-9, abs=1e-320)


@given(st.floats(0.0, 1.0))
def test_a_probability_stays_one(probability: float) -> None:
    assert 0.0 <= significant(probability) <= 1.0


def test_there_is_no_negative_zero() -> None:
    assert str(significant(-0.0)) == "0.0"


def test_every_float_of_an_answer_is_rounded_and_nothing_else_changes() -> None:
    score = Score(1 / 3, Hdi(0.95, -2 / 3, 2 / 3, 4 / 3), (Exceedance(2.0, 1 / 7, 6 / 7),), "within")
    plain = rounded(score)
    assert plain["hdi"] == {"probability": 0.95, "low": -0.666666667, "high": 0.666666667, "width": 1.33333333}
    assert plain["exceedance"] == [{"threshold": 2.0, "probability": 0.142857143, "probability_below": 0.857142857}]
    assert plain["position"] == "within"
    assert list(msgspec.json.decode(msgspec.json.encode(plain))) == ["expected_ns", "hdi", "exceedance", "position"]
