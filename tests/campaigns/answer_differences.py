"""The differences between two answers to the same request, each with a kind and a location; pure functions."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TOLERANCE = 1e-8  # relative: what the contract allows a number to move
SMALLEST = 1e-12  # below it the difference is compared with TOLERANCE * SMALLEST
VARYING = ("content-length", "date")  # follow from the body and the clock
METRIC_TYPE = re.compile(r"^# TYPE .*$", re.MULTILINE)
ABSENT = "(absent)"
# The fields that tell the members of a list apart.
IDENTITIES = {
    ".errors": ("field", "code"),
    ".limits": ("field", "unit", "from_age_years", "advisory"),
    ".records": ("kind", "request_id", "item"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]


@dataclass(frozen=True, slots=True)
class Difference:
    kind: str
    where: str  # the name of a header, or a path in the body with [] for any index
    before: str
    now: str


def differences(before: Answer, now: Answer) -> list[Difference]:
    found = [*_status(before, now), *_headers(before, now)]
    if before.media_type != now.media_type:
        return found
    if before.media_type.endswith("json") and before.body and now.body:
        one, other = json.loads(before.body), json.loads(now.body)
        if isinstance(one, dict) and "openapi" in one:
            return [*found, *_members(_responses(one), _responses(other), "response", "(OpenAPI document)")]
        return [*found, *_values(one, other, "")]
    return [*found, *_texts(before.body.decode(errors="replace"), now.body.decode(errors="replace"))]


def _status(before: Answer, now: Answer) -> Iterator[Difference]:
    if before.status != now.status:
        yield Difference("status", "", str(before.status), str(now.status))


def _headers(before: Answer, now: Answer) -> Iterator[Difference]:
    for name in sorted({*before.headers, *now.headers} - {*VARYING}):
        one, other = before.headers.get(name, ABSENT), now.headers.get(name, ABSENT)
        if one != other:
            yield Difference("header", name, one, other)


def _texts(before: str, now: str) -> Iterator[Difference]:
    """Of metrics only the names and types are compared, because their values depend on time."""
    if types := METRIC_TYPE.findall(before):
        yield from _members(set(types), set(METRIC_TYPE.findall(now)), "metric", "(metrics)")
    elif before != now:
        yield Difference("page", "(body)", f"{len(before):,} characters", f"{len(now):,} characters")


def _responses(document: dict[str, Any]) -> set[str]:
    """Of an OpenAPI document, whose texts and examples are many and not compared."""
    operations = ((path, *item) for path, methods in document["paths"].items() for item in methods.items())
    return {f"{method.upper()} {path}: {status}" for path, method, found in operations for status in found["responses"]}


def _values(before: Any, now: Any, where: str) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(now, dict):
        yield from _members(set(before), set(now), "field", where)
        common = [name for name in before if name in now]
        if common != [name for name in now if name in before]:
            yield Difference("order of fields", where, ", ".join(before), ", ".join(now))
        for name in common:
            yield from _values(before[name], now[name], f"{where}.{name}")
    elif isinstance(before, list) and isinstance(now, list):
        identity = IDENTITIES.get(where)
        yield from _named(before, now, where, identity) if identity else _lists(before, now, where)
    elif _is_number(before) and _is_number(now):
        if abs(before - now) > TOLERANCE * max(abs(before), abs(now), SMALLEST):
            yield Difference("number", where, repr(before), repr(now))
    elif before != now or type(before) is not type(now):
        kind = "text" if isinstance(before, str) and isinstance(now, str) else "value"
        yield Difference(kind, where, str(before), str(now))


def _lists(before: list[Any], now: list[Any], where: str) -> Iterator[Difference]:
    if len(before) != len(now):
        yield Difference("length", f"{where}[]", str(len(before)), str(len(now)))
    for one, other in zip(before, now, strict=False):
        yield from _values(one, other, f"{where}[]")


def _named(before: list[Any], now: list[Any], where: str, identity: Sequence[str]) -> Iterator[Difference]:
    """Member by member, because two trees may report the same in another order, and one of them more."""
    one, other = ([" ".join(str(each.get(name)) for name in identity) for each in found] for found in (before, now))
    yield from _members(set(one), set(other), "member", where)
    if one != other and sorted(one) == sorted(other):
        yield Difference("order", where, ", ".join(one), ", ".join(other))
    for name, each in zip(one, before, strict=True):
        if name in other:
            yield from _values(each, now[other.index(name)], f"{where}[]")


def _members(before: set[str], now: set[str], kind: str, where: str) -> Iterator[Difference]:
    yield from (Difference(kind, where, name, ABSENT) for name in sorted(before - now))
    yield from (Difference(kind, where, ABSENT, name) for name in sorted(now - before))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
