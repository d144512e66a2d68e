"""Compares a response with what its case expects, and with the rules that hold for every response.

Every mistake is reported, as a sentence that begins with where it is.
"""

import json
import math
import re
import uuid
from collections.abc import Iterator
from typing import Any

from app.services.conformance.cases import Case, Expected, ExpectedNumber
from app.services.conformance.client import JSON, Response

PROBLEM = "application/problem+json"
SIGNIFICANT_DIGITS = 9
SHOWN = 80  # characters of a value in a message
STEP = re.compile(r"([^.\[\]]+)|\[(\d*)\]")
MISSING = object()


def mistakes(case: Case, response: Response, sent_id: str | None) -> list[str]:
    """Everything in which the response differs from the contract; empty if it conforms."""
    expected = case.expect
    found = list(_status(expected, response))
    found += _request_id(expected, response, sent_id)
    found += _not_repeated(case, response)
    if response.media_type in (JSON, PROBLEM):
        try:
            body = _parse(response.body)
        except ValueError as error:
            return [*found, f"body: it is not valid JSON ({error})."]
        found += _body(expected, response, body)
    elif response.status >= 400 or expected.numbers or expected.equals:
        found.append(f"Content-Type: it is {_shown(response.media_type)}, not JSON.")
    return found


def _status(expected: Expected, response: Response) -> Iterator[str]:
    if response.status != expected.status:
        defect = "; 500 is always a defect" if response.status == 500 else ""
        yield f"status: it is {response.status}, expected {expected.status}{defect}."
    if response.status in (429, 503) and "retry-after" not in response.headers:
        yield f"Retry-After: it is missing from a response with status {response.status}."
    for name, value in expected.headers.items():
        found = response.headers.get(name.lower())
        if found != value:
            yield f"{name}: the header is {_shown(found)}, expected {_shown(value)}."


def _request_id(expected: Expected, response: Response, sent: str | None) -> Iterator[str]:
    found = response.headers.get("x-request-id")
    if found is None:
        yield "X-Request-ID: the header is missing."
    elif expected.request_id == "sent" and found != sent:
        yield "X-Request-ID: it is not the one that was sent."
    elif found != sent and not _is_uuid7(found):
        yield "X-Request-ID: it is not a UUIDv7."
    elif expected.request_id == "new" and found == sent:
        yield "X-Request-ID: it is the one that was sent, which is not valid."


def _not_repeated(case: Case, response: Response) -> Iterator[str]:
    """The request id may be repeated, and no case has a secret text in it."""
    headers = "\n".join(response.headers.values()).encode("latin-1", "replace")
    for text in case.never_repeated:
        if text.encode() in response.body or text.encode() in headers:
            yield "response: it repeats a value that was sent."


def _body(expected: Expected, response: Response, body: Any) -> Iterator[str]:
    if not isinstance(body, dict):
        yield "body: it is not a JSON object."
        return
    if body.get("request_id") != response.headers.get("x-request-id"):
        yield "request_id: it is not that of the X-Request-ID header."
    if response.status >= 400:
        yield from _problem(expected, response, body)
    for path, value in expected.equals.items():
        found = value_at(body, path)
        if _plain(found) != value:
            yield f"{path}: it is {_shown(_plain(found))}, expected {_shown(value)}."
    for number in expected.numbers:
        yield from _number(number, value_at(body, number.path))
    if expected.rounded:
        yield from (f"{path}: it has more than {SIGNIFICANT_DIGITS} digits." for path in _unrounded(body))


def _problem(expected: Expected, response: Response, body: dict[str, Any]) -> Iterator[str]:
    if response.media_type != PROBLEM:
        yield f"Content-Type: it is {_shown(response.media_type)}, not {PROBLEM}."
    for name in ("type", "title", "detail"):
        if not isinstance(body.get(name), str) or not body[name]:
            yield f"{name}: the problem has no such text."
    if _plain(body.get("status")) != response.status:
        yield "status: the problem names another one than the response."
    if expected.problem and not str(body.get("type")).endswith(f"#problem-{expected.problem}"):
        yield f"type: it is {_shown(body.get('type'))}, expected …#problem-{expected.problem}."
    if expected.errors is not None:
        yield from _errors(expected, body.get("errors", []))


def _errors(expected: Expected, found: Any) -> Iterator[str]:
    if not isinstance(found, list) or not all(isinstance(error, dict) for error in found):
        yield "errors: it is not an array of objects."
        return
    wanted = {(error.code, error.field) for error in expected.errors or ()}
    given = {(str(error.get("code")), str(error.get("field"))) for error in found}
    for code, field in sorted(wanted - given):
        yield f"errors: {code} is missing for {field or 'the body'}."
    for code, field in sorted(given - wanted):
        yield f"errors: {_shown(code)} for {_shown(field)} is not expected."
    if any(not isinstance(error.get("message"), str) or not error["message"] for error in found):
        yield "errors: one has no message."


def _number(expected: ExpectedNumber, found: Any) -> Iterator[str]:
    if not isinstance(found, _Number):
        yield f"{expected.path}: it is {_shown(_plain(found))}, expected a number."
    elif not abs(float(found.text) - expected.value) <= expected.tolerance:
        difference = f"the difference is {float(found.text) - expected.value:.3g}, allowed {expected.tolerance:.3g}"
        yield f"{expected.path}: it is {found.text}, expected {expected.value!r}; {difference}."


class _Number:
    """A number as it was written, whose digits can be counted."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def digits(self) -> int:
        mantissa = re.split("[eE]", self.text)[0].lstrip("-").replace(".", "").lstrip("0")
        return len(mantissa.rstrip("0"))


def _parse(body: bytes) -> Any:
    return json.loads(
        body.decode(),
        parse_float=_Number,
        parse_int=_Number,
        parse_constant=_refuse_constant,
        object_pairs_hook=_object,
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def value_at(body: Any, path: str) -> Any:
    """`a.b[0].c`; an empty index collects the values of all elements."""
    steps = [(name, index) for name, index in STEP.findall(path)]
    return _follow(body, steps)


def _follow(value: Any, steps: list[tuple[str, str]]) -> Any:
    for position, (name, index) in enumerate(steps):
        if name:
            if not isinstance(value, dict) or name not in value:
                return MISSING
            value = value[name]
        elif not isinstance(value, list):
            return MISSING
        elif not index:
            return [_follow(element, steps[position + 1 :]) for element in value]
        elif int(index) >= len(value):
            return MISSING
        else:
            value = value[int(index)]
    return value


def _plain(value: Any) -> Any:
    """With numbers as Python's own."""
    if isinstance(value, _Number):
        number = float(value.text)
        return int(number) if number.is_integer() else number
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _unrounded(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, _Number):
        if value.digits > SIGNIFICANT_DIGITS or not math.isfinite(float(value.text)):
            yield path
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _unrounded(one, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _unrounded(one, f"{path}[{index}]")


def _shown(value: Any) -> str:
    text = "missing" if value is MISSING or value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _is_uuid7(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text and uuid.UUID(text).version == 7
    except ValueError:
        return False
