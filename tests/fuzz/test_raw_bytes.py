"""Hostile bytes on real sockets: nothing breaks, everything is answered, and nothing of it comes back."""

import asyncio
import io
from collections.abc import Callable

import pytest

from tests.campaigns.service_process import MODELS
from tests.fuzz.canaries import NAME
from tests.fuzz.http_texts import Attempt
from tests.fuzz.judge import logged_canaries
from tests.fuzz.mutants import MUTANTS
from tests.fuzz.raw_bytes import Judged, fuzz
from tests.fuzz.target import Target
from tests.fuzz.wire import Answer, Wire
from tests.web.serving import serving

SEED = 2026
SCALAR_MAX_PEOPLE = range(500)  # enough that every mutant errs


@pytest.mark.req("REQ-010")
def test_hostile_bytes_break_nothing_and_never_come_back(target: Target, hostile_requests: int) -> None:
    async def work(port: int, key: str) -> Judged:
        return await fuzz(port, key, SEED, range(hostile_requests))

    judged, log = target.run(work)
    assert judged.faults == {}, "\n".join([f"seed {SEED}", *judged.examples])
    assert judged.asked == hostile_requests
    assert logged_canaries(log) == []
    assert {200, 400, 401, 404, 405, 413, 415, 422, 431} <= judged.statuses.keys()
    assert min(judged.statuses[status] for status in (200, 400, 422)) > hostile_requests / 50


LATER, REFUSED = (
    Answer(status, {"retry-after": "0"}, body, body) for status, body in ((503, NAME.encode()), (422, b""))
)


@pytest.mark.anyio
async def test_an_answer_that_says_later_is_judged_too(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([LATER, LATER, REFUSED])

    async def ask(wire: Wire, one: Attempt) -> Answer:
        return next(answers)

    monkeypatch.setattr(Wire, "ask", ask)
    judged = await fuzz(1, "key", SEED, range(1))
    assert (judged.retried, judged.statuses) == (2, {422: 1})
    assert (judged.faults["echo"], judged.faults["server error"]) == (2, 0)


def noticed(target: Target, log: io.StringIO) -> tuple[set[str], list[str]]:
    """By which words, and with which requests."""
    with serving(target.settings, MODELS) as running:
        judged = asyncio.run(fuzz(int(running.url.rsplit(":", 1)[1]), target.key, SEED, SCALAR_MAX_PEOPLE))
    assert judged.asked == len(SCALAR_MAX_PEOPLE)
    logged = logged_canaries(log.getvalue())
    return {*judged.faults, *(["logged"] if logged else [])}, judged.examples + logged


@pytest.mark.parametrize("spoil", MUTANTS, ids=lambda spoil: spoil.__name__)
def test_a_service_that_errs_is_noticed(
    spoil: Callable[[pytest.MonkeyPatch], None], target: Target, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch)
    assert MUTANTS[spoil] in noticed(target, log)[0]


def test_the_same_few_find_nothing_in_the_service_as_it_is(target: Target, log: io.StringIO) -> None:
    assert noticed(target, log) == (set(), [])
