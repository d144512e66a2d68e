"""What an answer to hostile bytes must look like. Each rule says what is wrong, in a word that a test can count."""

import json
from collections.abc import Iterator

from tests.fuzz.canaries import DIGITS, NAME
from tests.fuzz.http_texts import Attempt
from tests.fuzz.wire import Answer

PROBLEM = "application/problem+json"
SHOWN = 4000  # bytes of an input that is printed


def faults(attempt: Attempt, answer: Answer | None) -> Iterator[str]:
    if answer is None:
        yield "no answer"
        return
    if answer.status >= 500:
        yield "server error"
    if not answer.headers.get("x-request-id"):
        yield "no request id"
    refused_unread = answer.headers.get("connection") == "close"  # what is no HTTP has no id that could be repeated
    if attempt.request_id and not refused_unread and answer.headers.get("x-request-id") != attempt.request_id:
        yield "another's answer"
    if NAME.encode() in answer.raw.lower() or (answer.status >= 400 and DIGITS.encode() in answer.raw):
        yield "echo"
    if answer.status >= 400 and attempt.method != b"HEAD":
        yield from _problem_faults(answer)


def _problem_faults(answer: Answer) -> Iterator[str]:
    if answer.headers.get("content-type") != PROBLEM:
        yield "not a problem"
        return
    try:
        body = json.loads(answer.body)
    except ValueError:
        yield "not a problem"
        return
    if (body.get("status"), body.get("request_id")) != (answer.status, answer.headers.get("x-request-id")):
        yield "not a problem"
    if answer.status == 503 and "retry-after" not in answer.headers:
        yield "no retry-after"


def logged_canaries(log: str) -> list[str]:
    """Lines of a log that repeat what was sent."""
    return [line for line in log.splitlines() if NAME in line.lower() or DIGITS in line]


def describe(kind: str, attempt: Attempt, answer: Answer | None) -> str:
    """Enough to send it again: the number under the seed, and the bytes."""
    raw = attempt.raw if len(attempt.raw) <= SHOWN else attempt.raw[:SHOWN] + b"..."
    shown = answer.raw[:SHOWN] if answer else b""
    return f"{kind}: request {attempt.canary.number}\n  sent {raw!r}\n  got {shown!r}"
