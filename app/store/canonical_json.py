"""Frozen values as JSON in exactly one form: fields in their declared order, mappings sorted, two spaces.

Reading refuses every other form. That catches what a lenient reader lets pass: unknown fields, missing ones
that have a default, duplicate keys. A change of the fields is therefore a new format number.
"""

from typing import Any, TypeVar

import msgspec
import numpy as np

T = TypeVar("T")


class NotCanonical(ValueError):
    """These bytes are not what `write` makes of such a value; the text says why."""


def write(value: T) -> bytes:
    """Written, read and written again: an int where a float belongs becomes the float it will be read as."""
    return _encode(_decode(_encode(value), type(value)))


def read(data: bytes, kind: type[T]) -> T:
    value = _decode(data, kind)
    if _encode(value) != data:
        raise NotCanonical("it has fields or a form that this program does not write.")
    return value


def read_field(data: bytes, name: str) -> Any:
    """One field of an object whose other fields may be unknown, or None."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotCanonical("it is not JSON.") from error
    return value.get(name) if isinstance(value, dict) else None


def _encode(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain, order="deterministic"), indent=2) + b"\n"


def _decode(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    # msgspec's sentence names the place, as in "Expected `float`, got `null` - at `$.gates[0].measured`".
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotCanonical(f"it cannot be read: {error}.") from error


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a stored model")
