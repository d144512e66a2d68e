"""Nine significant digits: what single, batch, command line and backends agree on."""

from typing import Any

import msgspec

from app.errors import UnverifiedResult


def significant(value: float) -> float:
    """The nearest number of nine digits, in the same order, never -0. Raises UnverifiedResult for infinity and NaN."""
    if value - value != 0.0:  # infinite, or not a number
        raise UnverifiedResult("A number is not finite.")
    return float(f"{value:.9g}") + 0.0


def rounded(value: object) -> Any:
    """A frozen value as plain dicts, lists and numbers, ready for JSON, every float to nine digits."""
    return _round(msgspec.to_builtins(value))


def _round(value: Any) -> Any:
    kind = type(value)  # exact: `to_builtins` makes nothing else, and every answer passes through here
    if kind is float:
        return significant(value)
    if kind is dict:
        return {key: _round(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [_round(item) for item in value]
    return value
