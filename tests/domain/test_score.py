import pytest

from app.domain.score import Tails, position


@pytest.mark.parametrize(
    ("above", "below", "expected"),
    [
        (0.975, 0.0, "above_2"),
        (0.974999, 0.0, "uncertain"),
        (0.0, 0.975, "below_minus_2"),
        (0.0, 0.974999, "uncertain"),
        (0.025, 0.025, "within"),
        (0.025001, 0.0, "uncertain"),
        (0.0, 0.025001, "uncertain"),
        (0.5, 0.4, "uncertain"),
        (1.0, 0.0, "above_2"),
        (0.0, 0.0, "within"),
    ],
)
@pytest.mark.req("REQ-027")
def test_position_is_claimed_only_when_sure(above: float, below: float, expected: str) -> None:
    assert position(Tails(above, below)) == expected
