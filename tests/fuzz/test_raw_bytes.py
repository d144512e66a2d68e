"""Hostile bytes on real sockets: nothing breaks, everything is answered, and nothing of it comes back."""

import asyncio
import io
from collections.abc import Callable

import pytest

from tests.campaigns.service_process import MODELS
from tests.fuzz.judge import logged_canaries
from tests.fuzz.mutants import MUTANTS
from tests.fuzz.raw_bytes import Judged, fuzz
from tests.fuzz.target import Target
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
