"""Whole requests as bytes: method, path, query, headers and framing, each hostile now and then.

Every one is complete, so every one must be answered.
"""

import random
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import quote

from tests.fuzz.canaries import Canary, a_reading, a_study
from tests.fuzz.json_texts import mutated

JSON = b"application/json"
TYPES = (
    b"", b"text/plain", b"application/json; charset=utf-16", b"application/json;charset=UTF-8", b"application/jsonx",
    b"text/csv", b"application/x-ndjson", b"multipart/form-data; boundary=a", b"application/json, text/html",
    b"\xff/\xff", b"*/*", b"application/fhir+json",
)  # fmt: skip
METHODS = (b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"HEAD", b"TRACE", b"PROPFIND", b"QUERY")
POSTED = (
    b"/v1/sites/SoV/score",
    b"/v1/sites/AA/score",
    b"/v1/studies/score",
    b"/v1/models/SoV/activate",
    b"/v1/batch/score",
)
LOOKED_UP = (
    b"/", b"/docs", b"/redoc", b"/openapi.json", b"/guide", b"/metrics", b"/health/live", b"/health/ready",
    b"/v1/sites", b"/v1/limits", b"/v1/models", b"/v1/models/SoV/1.0.0", b"/v1/models/SoV/history", b"/v1/selftest",
    b"/v1/audit/records", b"/v1/audit/records/%s", b"/assets/%s", b"/v1/models/%s/1.0.0", b"/v1/models/SoV/%s",
    b"/v1/models/%s/history", b"/%s", b"/v1/sites/%s/reliability-map", b"/models/SoV/%s",
)  # fmt: skip
SEGMENTS = (
    "", ".", "..", "%2e%2e%2f", "%00", "%ff%fe", "%c0%af", "%ed%a0%80", "%", "%zz", "a" * 300, "a" * 9000, "é", "*",
    "SoV", "1.0.0", "current", "<b>", "a b".replace(" ", "%20"), "%0d%0aX:1", "~", "con", "-1", "SoV%00", "\\..\\",
)  # fmt: skip
QUERIES = (
    "from=%s", "to=%s", "site=%s", "cursor=%s", "item=%s", "%s", "from=2026-01-01&from=%s", "a=%s&b",
    "from=%s&to=%s&site=SoV", "sex=%s", "sex=male&diameter_mm=%s",
)  # fmt: skip
VALUES = (
    "", "0", "-1", "1e400", "NaN", "9" * 40, "2026-13-45", "2026-11-16T25:61:61Z", "0001-01-01T00:00:00+23:59", "%00",
    "%ff", "%ed%a0%80", "+", "&&;;=", "\u0663".encode().decode("latin-1"), "a" * 5000, "null", "[]", "{}", "%25", "'--",
)  # fmt: skip
HEADERS = (
    b"X-Request-ID: %s!", b"X-Request-ID: ", b"X-Request-ID: \xff%s", b"Authorization: Basic %s",
    b"Authorization: Bearer %s", b"Authorization: Bearer nsk_%s_%s", b"Authorization: \xe9%s", b"Authorization: Bearer",
    b"Cookie: a=%s", b"Accept: %s", b"Range: bytes=0-9", b"Accept: image/svg+xml", b"Accept-Encoding: gzip, %s",
    b"X-Forwarded-For: %s", b"X-Forwarded-Host: %s", b"X-HTTP-Method-Override: DELETE", b"Content-Encoding: gzip",
    b"If-None-Match: %s", b"Origin: http://%s", b"Referer: http://a/%s", b"User-Agent: %s", b"%s: a", b"X: \x80\xff%s",
    b"Idempotency-Key: %s", b"Expect: 100-continue", b"Upgrade: websocket", b"Connection: Upgrade", b"TE: trailers",
    b"Date: %s", b"X-Empty:", b"Prefer: %s", b"Access-Control-Request-Method: PUT",
)  # fmt: skip
SPOILED = (
    b"Bad Name: %s", b"X: a\r\n folded %s", b"X: \x00%s", b": %s", b"X %s", b"Host: %s", b"Transfer-Encoding: %s",
    b"Content-Length: %s", b"Content-Length: -1", b"Transfer-Encoding: gzip", b"X: \x0b%s", b"H\xc3\xa9: %s",
)  # fmt: skip
VERSIONS = (b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/9.9", b"HTTQ/1.1", b"")


@dataclass(frozen=True, slots=True)
class Attempt:
    canary: Canary
    method: bytes
    raw: bytes
    alone: bool  # on a connection of its own: where one request ends and the next begins may be disputed
    request_id: str | None = None  # to be found again in the answer, and in no other


def attempt(seed: int, number: int, host: bytes, credential: bytes) -> Attempt:
    """The same bytes for the same seed and number."""
    canary, rng = Canary(number), random.Random(f"{seed} {number}")  # noqa: S311 - no secret
    kind = rng.random()
    if kind < 0.55:
        return _posted(rng, canary, host, credential)
    if kind < 0.9:
        return _looked_up(rng, canary, host, credential)
    return _spoiled(rng, canary, host, credential)


def _posted(rng: random.Random, canary: Canary, host: bytes, credential: bytes) -> Attempt:
    path = rng.choice(POSTED)
    document = a_study(rng, canary) if path == b"/v1/studies/score" else a_reading(rng, canary)
    body = mutated(rng, document, canary)
    kind = JSON if rng.random() < 0.9 else rng.choice(TYPES)
    own = [b"Content-Type: " + kind] if kind else []
    framing, framed = _framed(rng, body)
    more, request_id = _some_headers(rng, canary)
    known = _credential(credential, more, canary)
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: " + host, *known, *own, *framing, *more]
    return Attempt(canary, b"POST", _head(lines) + framed, False, request_id)


def _looked_up(rng: random.Random, canary: Canary, host: bytes, credential: bytes) -> Attempt:
    method = b"GET" if rng.random() < 0.8 else rng.choice(METHODS)
    target = rng.choice((*LOOKED_UP, b"/v1/audit/records/%s/replay", b"/v1/sites/%s/score"))
    segment = rng.choice((*SEGMENTS, "")) + rng.choice((canary.name, canary.name, ""))
    target = target.replace(
        b"%s", quote(segment, safe="%./\\*<>~").encode() if rng.random() < 0.8 else segment.encode()
    )
    if rng.random() < 0.4:
        value = rng.choice(VALUES) + canary.name
        target += b"?" + rng.choice(QUERIES).replace("%s", value).encode("latin-1", "replace").replace(b" ", b"+")
    more, request_id = _some_headers(rng, canary)
    lines = [method + b" " + target + b" HTTP/1.1", b"Host: " + host, *_credential(credential, more, canary), *more]
    return Attempt(canary, method, _head(lines), False, request_id)


def _spoiled(rng: random.Random, canary: Canary, host: bytes, credential: bytes) -> Attempt:
    """What may be no HTTP at all; still with an end."""
    method = rng.choice((*METHODS, b"get", b"G\x00T", canary.name.encode(), b"CONNECT", b"PRI"))
    target = rng.choice(
        (
            b"/v1/sites",
            b"*",
            b"http://" + host + b"/v1/sites",
            b"//v1//sites",
            canary.name.encode(),
            b"/ /",
            b"/\xff\x00",
        )
    )
    lines = [method + b" " + target + b" " + rng.choice(VERSIONS), b"Host: " + host, credential, b"Connection: close"]
    many = rng.choice((0, 0, 0, 101, 200))
    lines += [b"X-%d: %s" % (place, canary.name.encode()) for place in range(many)]
    lines += [b"X-Long: " + canary.name.encode() * 2000] if rng.random() < 0.1 else []
    if rng.random() < 0.7:
        lines.insert(rng.randrange(1, len(lines) + 1), _filled(rng.choice(SPOILED), canary))
    return Attempt(canary, method, _head(lines), alone=True)


def _framed(rng: random.Random, body: bytes) -> tuple[list[bytes], bytes]:
    """The headers that say how long the body is, and the body so written."""
    if rng.random() < 0.75:
        return [b"Content-Length: %d" % len(body)], body
    cuts = sorted(rng.randrange(len(body) + 1) for _ in range(rng.choice((0, 1, 5, 40))))
    pieces = [body[start:end] for start, end in pairwise([0, *cuts, len(body)]) if start < end]
    chunks = [b"%x%s\r\n%s\r\n" % (len(piece), rng.choice((b"", b"", b";a=b")), piece) for piece in pieces]
    return [b"Transfer-Encoding: chunked"], b"".join(chunks) + b"0\r\n\r\n"


def _credential(credential: bytes, more: list[bytes], canary: Canary) -> list[bytes]:
    """The right one; every second time that there is another one, the other one alone."""
    is_other = any(line.startswith(b"Authorization") for line in more)
    return [] if is_other and canary.number % 2 else [credential]


def _some_headers(rng: random.Random, canary: Canary) -> tuple[list[bytes], str | None]:
    """And the request id among them, if they do not hold a strange one."""
    lines = [_filled(rng.choice(HEADERS), canary) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    if any(line.startswith(b"X-Request-ID") for line in lines):
        return lines, None
    return [*lines, b"X-Request-ID: fuzz-%d" % canary.number], f"fuzz-{canary.number}"


def _filled(template: bytes, canary: Canary) -> bytes:
    return template.replace(b"%s", canary.name.encode())


def _head(lines: list[bytes]) -> bytes:
    return b"\r\n".join(line for line in lines if line) + b"\r\n\r\n"
