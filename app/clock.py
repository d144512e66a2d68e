"""The current time, and timestamps as text: UTC, fixed width, so that text order is time order."""

from datetime import UTC, datetime
from functools import lru_cache


def utc_now() -> datetime:
    return datetime.now(UTC)


@lru_cache(maxsize=64)  # a response and its record say the same time
def timestamp(when: datetime) -> str:
    """2026-11-15T10:30:00.123Z"""
    return when.astimezone(UTC).isoformat(timespec="milliseconds")[:23] + "Z"


def parse_timestamp(text: str) -> datetime:
    """The reverse of `timestamp`. Raises ValueError for anything else."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z")


def parse_iso_time(text: str) -> datetime:
    """Any ISO 8601 time, in UTC unless it says otherwise. Raises ValueError."""
    when = datetime.fromisoformat(text)
    try:
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:  # year 1 or 9999, moved out of range by its own time zone
        raise ValueError("the time is out of range") from error


def iso_timestamp(text: str) -> str:
    """As a `timestamp`. Raises ValueError."""
    return timestamp(parse_iso_time(text))


def month_of(when: datetime) -> str:
    return timestamp(when)[:7]


def later_month(month: str, by: int) -> str:
    year, number = divmod(int(month[:4]) * 12 + int(month[5:]) - 1 + by, 12)
    return f"{year:04d}-{number + 1:02d}"
