"""Runs all cases against one deployment: sends each request exactly as it is written, and compares the response.

Each request has a connection of its own, because a service may close one after a refusal. Redirects are not followed,
so that the key goes to the given address only. Every mistake in a response is reported, as a sentence that begins with
where it is.
"""

import base64
import http.client
import json
import math
import re
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from app.clock import timestamp, utc_now
from app.errors import CouldNotCheck, InvalidUrl, NoResponse
from app.services.conformance.cases import Case, CaseFile, CaseModel, CaseRequest, Expected, ExpectedNumber

Progress = Callable[[str, float], None]
ATTEMPTS = 5  # where the service says that it is busy
LONGEST_PAUSE_SECONDS = 10.0
READY = CaseRequest("GET", "/health/ready")
MODELS = CaseRequest("GET", "/v1/models")
SCORE = CaseRequest("POST", "/v1/sites/SoV/score", json={})
SCOPES = "the scopes of the caller are not those that it needs"
NEEDED = "Conformance is checked with a key that has the scopes score and model:read: --key-file."

# Sending
SECONDS = 30.0
LARGEST_RESPONSE = 64 * 1024 * 1024  # bytes
JSON = "application/json"
ACCEPT = f"{JSON}, */*;q=0.1"  # unless a case gives another
WRONG_KEY = "nsk_conformance_this-key-does-not-exist"

# Comparing
PROBLEM = "application/problem+json"
SIGNIFICANT_DIGITS = 9
SHOWN = 80  # characters of a value in a message
STEP = re.compile(r"([^.\[\]]+)|\[(\d*)\]")
MISSING = object()


@dataclass(frozen=True, slots=True)
class CaseResult:
    name: str
    about: str
    outcome: Literal["passed", "failed", "skipped"]
    mistakes: tuple[str, ...] = ()
    reason: str = ""  # why it was skipped


@dataclass(frozen=True, slots=True)
class Conformance:
    url: str
    checked_at: str
    conforms: bool
    passed: int
    failed: int
    skipped: int
    not_tried: dict[str, str]
    cases: tuple[CaseResult, ...]


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]  # by name in lower case
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Client:
    def __init__(self, url: str, key: str | None) -> None:
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            raise InvalidUrl from None
        if parts.scheme not in ("http", "https") or not self._host or parts.query or parts.fragment or parts.username:
            raise InvalidUrl
        self._prefix, self.key = parts.path.rstrip("/"), key
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None

    def send(self, request: CaseRequest, request_id: str | None) -> Response:
        connection = self._connection()
        try:
            connection.putrequest(request.method, self._prefix + request.path, skip_accept_encoding=True)
            body = body_of(request)
            for name, value in self._headers(request, request_id, body):
                connection.putheader(name, value)
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before the whole body was sent
                connection.endheaders(body)
            return _read(connection.getresponse())
        except (OSError, http.client.HTTPException) as error:
            raise NoResponse(_reason(error)) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=SECONDS)
        return http.client.HTTPSConnection(self._host, self._port, timeout=SECONDS, context=self._tls)

    def _headers(self, request: CaseRequest, request_id: str | None, body: bytes | None) -> list[tuple[str, str]]:
        own = [(header.name, header.value * header.repeat) for header in request.headers]
        headers = [("Accept", ACCEPT), ("User-Agent", "normalcy-conformance")]
        if body is not None:
            headers += [("Content-Length", str(len(body))), ("Content-Type", JSON)]
        if request_id is not None:
            headers.append(("X-Request-ID", request_id))
        key = {"given": self.key, "none": None, "wrong": WRONG_KEY}[request.credential]
        if key is not None:
            headers.append(("Authorization", f"Bearer {key}"))
        replaced = {name.lower() for name, _ in own}
        return [*((name, value) for name, value in headers if name.lower() not in replaced), *own]


def body_of(request: CaseRequest) -> bytes | None:
    if request.json is not UNSET:
        body = msgspec.json.encode(request.json)
    elif isinstance(request.text, str):
        body = request.text.encode()
    elif isinstance(request.base64, str):
        body = base64.b64decode(request.base64, validate=True)
    else:
        return None
    return body * request.repeat


def _read(response: http.client.HTTPResponse) -> Response:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Response(response.status, headers, response.read(LARGEST_RESPONSE))


def _reason(error: OSError | http.client.HTTPException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({error.verify_message}); SSL_CERT_FILE names further authorities"
    if isinstance(error, TimeoutError):
        return f"it took longer than {SECONDS:g} s"
    return str(getattr(error, "strerror", None) or type(error).__name__)


def check_conformance(url: str, key: str | None, file: CaseFile, report: Progress) -> Conformance:
    """Raises CouldNotCheck if the deployment cannot be judged."""
    client, results = Client(url, key), []
    published = _published(client, file)
    for index, case in enumerate(file.cases):
        report(case.name, index / len(file.cases))
        results.append(_run(client, case, published))
    count = {
        outcome: sum(result.outcome == outcome for result in results) for outcome in ("passed", "failed", "skipped")
    }
    return Conformance(
        url=url,
        checked_at=timestamp(utc_now()),
        conforms=not count["failed"],
        **count,
        not_tried=file.not_tried,
        cases=tuple(results),
    )


def _published(client: Client, file: CaseFile) -> set[str]:
    """Which models of the cases this deployment has, bit for bit. Also checks what must be right before any case."""
    try:
        ready, models, score = (_send(client, request, None) for request in (READY, MODELS, SCORE))
    except NoResponse as error:
        raise CouldNotCheck(str(error)) from error
    if ready.status != 200:
        raise CouldNotCheck(f"The service is not ready: GET {READY.path} has status {ready.status}.")
    for response, request in ((models, MODELS), (score, SCORE)):
        if response.status in (401, 403):
            raise CouldNotCheck(f"{request.method} {request.path} has status {response.status}. {NEEDED}")
    if models.status != 200:
        raise CouldNotCheck(f"GET {MODELS.path} has status {models.status}.")
    found = _identities(models)
    return {name for name, model in file.models.items() if model in found}


def _identities(response: Response) -> list[CaseModel]:
    try:
        listed: list[dict[str, Any]] = msgspec.json.decode(response.body)["models"]
        return [CaseModel(one["site"], one["version"], one["sha256"]) for one in listed]
    except (msgspec.MsgspecError, TypeError, LookupError):
        raise CouldNotCheck(f"GET {MODELS.path} does not list models.") from None


def _run(client: Client, case: Case, published: set[str]) -> CaseResult:
    missing = [name for name in case.models if name not in published]
    if missing:
        reason = f"{' and '.join(missing)} as shipped is not published here"
        return CaseResult(case.name, case.about, "skipped", reason=reason)
    if case.needs_key and client.key is None:
        return CaseResult(case.name, case.about, "skipped", reason="the check runs without a key")
    request = case.request
    sent_id = f"conformance-{uuid.uuid4()}" if request.request_id is UNSET else request.request_id
    try:
        response = _send(client, request, sent_id)
    except NoResponse as error:
        _require_reachable(client)
        return CaseResult(case.name, case.about, "failed", (str(error),))
    if response.status == case.skip_on_status:
        return CaseResult(case.name, case.about, "skipped", reason=SCOPES)
    found = mistakes(case, response, sent_id)
    return CaseResult(case.name, case.about, "failed" if found else "passed", tuple(found))


def _send(client: Client, request: CaseRequest, request_id: str | None) -> Response:
    """Sends again where the service is busy (429, 503), as it says."""
    for _ in range(ATTEMPTS - 1):
        response = client.send(request, request_id)
        pause = response.headers.get("retry-after", "")
        if response.status not in (429, 503) or not pause.isdigit():
            return response
        time.sleep(min(float(pause), LONGEST_PAUSE_SECONDS))
    return client.send(request, request_id)


def _require_reachable(client: Client) -> None:
    """A service that answers nothing any more cannot be judged."""
    try:
        client.send(READY, None)
    except NoResponse as error:
        raise CouldNotCheck(f"The service stopped responding. {error}") from error


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
