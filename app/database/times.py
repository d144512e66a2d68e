"""Time as the database keeps it: UTC text of fixed width, whose order is the order of time."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)


def timestamp(when: datetime) -> str:
    """2026-11-15T10:30:00.123Z"""
    return when.astimezone(UTC).isoformat(timespec="milliseconds")[:23] + "Z"


def moment(text: str) -> datetime:
    """The reverse of `timestamp`. Raises ValueError for what it never wrote."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z")


def month_of(when: datetime) -> str:
    return timestamp(when)[:7]


def later_month(month: str, by: int) -> str:
    year, number = divmod(int(month[:4]) * 12 + int(month[5:]) - 1 + by, 12)
    return f"{year:04d}-{number + 1:02d}"
