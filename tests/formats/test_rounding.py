from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.formats.rounding import rounded, significant, significant_columns
from app.maths.moments import Array
from app.schemas.answers import Exceedance, Hdi, Score

finite_floats = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@pytest.mark.parametrize(
    ("value", "expected"), [(1.23456789049, 1.23456789), (123456789.6, 123456790.0), (1e-20 / 3, 3.33333333e-21)]
)
def test_nine_digits_remain(value: float, expected: float) -> None:
    assert significant(value) == expected


@given(finite_floats, finite_floats)
def test_rounding_keeps_order_and_stays_close(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert significant(low) <= significant(high)
    assert significant(one) == pytest.approx(one, rel=5.1e-9, abs=1e-320)


@given(st.floats(0.0, 1.0))
def test_a_probability_stays_one(probability: float) -> None:
    assert 0.0 <= significant(probability) <= 1.0


def test_there_is_no_negative_zero() -> None:
    assert str(significant(-0.0)) == "0.0"


def by_text(values: Array) -> Array:
    return np.array([float(f"{value:.9g}") + 0.0 for value in values.tolist()])


def assert_same_bits(values: Array) -> None:
    with np.errstate(all="ignore"):
        found = significant_columns(values)
    different = found.view(np.int64) != by_text(values).view(np.int64)
    assert not different.any(), values[different][:5]


def ordinary(rng: np.random.Generator, count: int) -> Array:
    """Of all sizes that answers have, and beyond."""
    return rng.normal(size=count) * 10.0 ** rng.integers(-20, 14, count)


def any_bits(rng: np.random.Generator, count: int) -> Array:
    """Every double alike, subnormal ones too."""
    values: Array = rng.integers(-(2**63), 2**63, count).view(np.float64)
    finite: Array = values[np.isfinite(values)]
    return finite


def near_ties(rng: np.random.Generator, count: int) -> Array:
    """Half a unit of the ninth digit, and its neighbours."""
    ties = (rng.integers(10**8, 10**9, count) + 0.5) / 10.0 ** rng.integers(-3, 24, count)
    return np.concatenate([ties, np.nextafter(ties, 0.0), np.nextafter(ties, np.inf)])


def powers_of_ten(rng: np.random.Generator, count: int) -> Array:
    powers = 10.0 ** rng.integers(-300, 300, count)
    return np.concatenate([powers, np.nextafter(powers, 0.0), np.nextafter(powers, np.inf), powers * (1.0 - 5e-10)])


KINDS = (ordinary, any_bits, near_ties, powers_of_ten)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_rounded_to_the_same_bits_as_by_their_text(
    kind: Callable[[np.random.Generator, int], Array],
) -> None:
    values = kind(np.random.default_rng(1), 10_000)
    assert_same_bits(np.concatenate([values, -values]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_are_rounded_to_the_same_bits_as_by_their_text(
    kind: Callable[[np.random.Generator, int], Array], pytestconfig: pytest.Config
) -> None:
    """Millions with `--repetitions 10`."""
    assert_same_bits(kind(np.random.default_rng(2), 50_000 * pytestconfig.getoption("--repetitions")))


def test_columns_of_the_smallest_and_the_largest_numbers() -> None:
    extremes = np.array([0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 0.99999999949, 0.9999999995])
    assert_same_bits(extremes)
    with np.errstate(all="ignore"):
        assert str(significant_columns(np.array([np.nan, np.inf, -np.inf])).tolist()) == "[nan, inf, -inf]"


def test_a_matrix_is_rounded_element_by_element() -> None:
    values = ordinary(np.random.default_rng(3), 60).reshape(5, 12)
    for matrix in (values, values.T):
        assert significant_columns(matrix).tolist() == by_text(matrix.ravel()).reshape(matrix.shape).tolist()


def test_every_float_of_an_answer_is_rounded_and_nothing_else_changes() -> None:
    score = Score(1 / 3, Hdi(0.95, -2 / 3, 2 / 3, 4 / 3), (Exceedance(2.0, 1 / 7, 6 / 7),), "within")
    plain = rounded(score)
    assert plain["hdi"] == {"probability": 0.95, "low": -0.666666667, "high": 0.666666667, "width": 1.33333333}
    assert plain["exceedance"] == [{"threshold": 2.0, "probability": 0.142857143, "probability_below": 0.857142857}]
    assert plain["position"] == "within"
    assert list(msgspec.json.decode(msgspec.json.encode(plain))) == ["expected_ns", "hdi", "exceedance", "position"]
