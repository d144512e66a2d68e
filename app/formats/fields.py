"""Reading one JSON object field by field: a value of the right type and range, or a fault in the common list.

What could not be read comes back as a stand-in of the right type (NaN for a number), so that the reading goes
on to the next fault; nothing made of stand-ins leaves, because the caller raises when the list is not empty.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from app.domain.limits import Limit
from app.errors import FieldError
from app.formats.faults import fault

ABSENT = object()
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
MOST_LIKENED, LONGEST_LIKENED = 8, 64  # unknown names that are compared with ours: the time for it stays bounded
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Fields:
    """An object of the request, with its dotted path and the list that takes the faults of all objects."""

    __slots__ = ("_values", "faults", "path")

    def __init__(
        self, values: object, allowed: Mapping[str, object], faults: list[FieldError], path: str = "", hint: str = ""
    ) -> None:
        """`hint` follows where a field is not known, after a blank."""
        self.path, self.faults = path, faults
        self._values: dict[str, object] = values if isinstance(values, dict) else {}
        if not isinstance(values, dict):
            self.refuse("wrong_type", "", f"{path or 'The body'} must be an object with the fields {_named(allowed)}.")
        elif not values.keys() <= allowed.keys():
            unknown = [name for name in values if name not in allowed]
            count = "1 field is" if len(unknown) == 1 else f"{len(unknown)} fields are"
            where = f" in {path}" if path else ""
            meant = did_you_mean(unknown, [name for name in allowed if name not in values])
            self.refuse(
                "unknown_field", "(unknown)", f"{count} not known{where}.{hint or meant} Known are {_named(allowed)}."
            )

    def refuse(self, code: str, name: str, message: str) -> None:
        self.faults.append(fault(code, self.at(name), message))

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path and name else self.path or name

    def value(self, name: str) -> object:
        return self._values.get(name, ABSENT)

    def real(self, limit: Limit) -> float:
        """Any number, required, for a range that the caller judges. NaN: not there, or no number."""
        value = self._values.get(limit.field, ABSENT)
        # Not isinstance, for true is an int to Python; and NaN, which a CSV may hold, does not equal itself.
        if (type(value) is float or type(value) is int) and value == value:
            return value + 0.0  # which also makes 0.0 of -0.0
        code, comma = "missing" if value is ABSENT else "wrong_type", _comma_hint(value)
        rule = f"{self.at(limit.field)} {_must_be(value)} a number {span(limit)}.{comma}"
        self.refuse(code, limit.field, rule)
        return math.nan

    def number(self, limit: Limit) -> float:
        """A number in its range; required unless the limit has a default."""
        if limit.default is not None and limit.field not in self._values:
            return limit.default
        value = self.real(limit)
        if not limit.holds(value) and not math.isnan(value):
            self.refuse("out_of_range", limit.field, f"{self.at(limit.field)} must be a number {span(limit)}.")
        return value

    def numbers(self, count: Limit, each: Limit, default: tuple[float, ...]) -> tuple[float, ...]:
        if count.field not in self._values:
            return default
        return tuple([self._element(name, value, each) for name, value in self.elements(count, "numbers")])

    def elements(self, count: Limit, of: str) -> list[tuple[str, object]]:
        """The elements of an array with their names; no more of them than allowed."""
        name, values = count.field, self.value(count.field)
        if not isinstance(values, list) or not count.holds(len(values)):
            rule = f"{self.at(name)} {_must_be(values)} an array of {count.low:g} to {count.high:g} {of}."
            self.refuse(_array_code(values, count), name, rule)
        listed = values[: int(count.high)] if isinstance(values, list) else []
        return [(f"{name}[{k}]", value) for k, value in enumerate(listed)]

    def _element(self, name: str, value: object, limit: Limit) -> float:
        if (type(value) is float or type(value) is int) and limit.holds(value):
            return value + 0.0
        code = "out_of_range" if type(value) in (float, int) else "wrong_type"
        self.refuse(code, name, f"{self.at(name)} must be a number {span(limit)}.")
        return math.nan

    def text(self, limit: Limit, *, required: bool = False) -> str:
        """A text without control characters; empty: not there, or refused."""
        name, value = limit.field, self.value(limit.field)
        if value is ABSENT and not required:
            return ""
        if isinstance(value, str) and limit.holds(len(value)) and not _CONTROL.search(value):
            return value
        rule = f"a text of {limit.low:g} to {limit.high:g} characters, none a control character."
        self.refuse(_text_code(value, limit), name, f"{self.at(name)} {_must_be(value)} {rule}")
        return ""

    def choice(self, name: str, choices: Sequence[str], rule: str = "", *, required: bool = False) -> str | None:
        """`rule` says what the choices are, to follow "must be" or "is required:"."""
        value = self._values.get(name, ABSENT)
        if isinstance(value, str) and value in choices:
            return value
        rule = f"{self.at(name)} {_must_be(value)} {rule or f'one of {_named(choices)}.'}"
        if value is not ABSENT:
            self.refuse("not_a_choice" if isinstance(value, str) else "wrong_type", name, rule)
        elif required:
            self.refuse("missing", name, rule)
        return None

    def flag(self, name: str) -> bool:
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            self.refuse("wrong_type", name, f"{self.at(name)} must be true or false.")
        return value is True


def did_you_mean(unknown: Iterable[str], known: Sequence[str]) -> str:
    """A hint made of our own names alone: what the caller wrote is never repeated."""
    meant = dict.fromkeys(name for word in islice(unknown, MOST_LIKENED) for name in _nearest(word.lower(), known))
    return f" Did you mean {', '.join(meant)}?" if meant else ""


def _nearest(word: str, known: Sequence[str]) -> list[str]:
    if len(word) > LONGEST_LIKENED:
        return []
    begun = [name for name in known if word and name.startswith(f"{word}_")]  # age: too short to be like age_years
    return begun[:1] or difflib.get_close_matches(word, known, n=1)


def span(limit: Limit) -> str:
    return f"from {limit.low:g} to {limit.high:g} ({limit.unit})"


def _must_be(value: object) -> str:
    return "is required:" if value is ABSENT else "must be"


def _comma_hint(value: object) -> str:
    is_comma = isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip())
    return " Write a decimal point, not a comma." if is_comma else ""


def _array_code(value: object, count: Limit) -> str:
    if not isinstance(value, list):
        return "missing" if value is ABSENT else "wrong_type"
    return "too_short" if len(value) < count.low else "too_long"


def _text_code(value: object, limit: Limit) -> str:
    if not isinstance(value, str):
        return "missing" if value is ABSENT else "wrong_type"
    if len(value) < limit.low:
        return "too_short"
    return "too_long" if len(value) > limit.high else "control_character"


def _named(names: Iterable[str]) -> str:
    return ", ".join(names)
