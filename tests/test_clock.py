"""Timestamps: UTC, of fixed width, so that their order as text is their order in time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.clock import iso_timestamp, later_month, month_of, parse_timestamp, timestamp

NOON = datetime(2026, 11, 15, 12, 30, 0, 123_999, UTC)


def test_a_timestamp_is_utc_in_milliseconds_and_can_be_read_back() -> None:
    assert timestamp(NOON) == timestamp(NOON.astimezone(timezone(timedelta(hours=5)))) == "2026-11-15T12:30:00.123Z"
    assert parse_timestamp(timestamp(NOON)) == NOON.replace(microsecond=123_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-15", "2026-11-15T00:00:00.000Z"),
        ("2026-11-15T12:30", "2026-11-15T12:30:00.000Z"),
        ("2026-11-15T12:30:00+02:00", "2026-11-15T10:30:00.000Z"),
        ("2026-11-15T12:30:00.5Z", "2026-11-15T12:30:00.500Z"),
    ],
)
def test_any_iso_time_is_read_as_utc_unless_it_says_otherwise(text: str, expected: str) -> None:
    assert iso_timestamp(text) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "0001-01-01T00:00+12:00", "9999-12-31T23:00-12:00"])
def test_anything_else_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        iso_timestamp(text)


def test_months_go_on_after_december() -> None:
    assert month_of(NOON) == "2026-11"
    assert [later_month("2026-11", by) for by in (0, 1, 2, 14)] == ["2026-11", "2026-12", "2027-01", "2028-01"]
