"""Requests with an Idempotency-Key: each is answered once, and a repetition gets the stored answer for a day.

The order is: claim the key, compute, commit the audit record, store the answer, send it. If the process dies on the
way, the claim ends after a few seconds and the request can be repeated. It then has a second record; it never has an
answer without one.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from app.clock import timestamp
from app.database.engine import Database
from app.database.idempotent_answers import Claim, StoredAnswer, claim_key, delete_expired, release_key, store_answer
from app.errors import DatabaseUnavailable, IdempotencyKeyReused, StillAnswering
from app.observability import describe_failure

STORED = timedelta(hours=24)
CLAIMED = timedelta(seconds=10)  # a request is answered, or has failed, within 2.5 s
DELETE_SECONDS = 600.0


class Answer(NamedTuple):
    body: bytes
    is_repeated: bool


class IdempotentAnswers:
    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self._clock = database, clock

    async def answer(
        self, principal: str, key: bytes, request_sha256: bytes, work: Callable[[], Awaitable[bytes]], deadline: float
    ) -> Answer:
        """What `work` returns, or returned for the same key and request. Raises what `work` raises, StillAnswering,
        IdempotencyKeyReused or DatabaseUnavailable. `deadline` is in the time of the event loop."""
        key_sha256 = hashlib.sha256(b"\0".join([principal.encode(), key])).digest()
        claim = await self._claim(key_sha256, request_sha256, deadline)
        if isinstance(claim, StoredAnswer):
            if claim.request_sha256 != request_sha256:
                raise IdempotencyKeyReused
            if claim.answer is None:
                raise StillAnswering
            return Answer(claim.answer, is_repeated=True)
        try:
            body = await work()
        except Exception:
            await self._release(claim)
            raise
        async with self._database.writing() as connection:
            await store_answer(connection, claim, body, timestamp(self._clock() + STORED))
        return Answer(body, is_repeated=False)

    async def run(self) -> None:
        """Deletes what has expired."""
        while True:
            try:
                async with self._database.writing() as connection:
                    await delete_expired(connection, timestamp(self._clock()))
            except DatabaseUnavailable:
                pass  # the audit writer reports it
            except Exception as error:  # noqa: BLE001 - after any other failure, too, deleting must go on
                structlog.get_logger("answers").error("deleting stored answers failed", **describe_failure(error))
            await asyncio.sleep(DELETE_SECONDS)

    async def _claim(self, key_sha256: bytes, request_sha256: bytes, deadline: float) -> Claim | StoredAnswer:
        now = self._clock()
        try:
            async with asyncio.timeout_at(deadline), self._database.writing() as connection:
                until = timestamp(now + CLAIMED)
                claim = await claim_key(connection, key_sha256, request_sha256, timestamp(now), until)
        except TimeoutError:
            raise DatabaseUnavailable from None
        if claim is None:  # another process has just given it up
            raise StillAnswering
        return claim

    async def _release(self, claim: Claim) -> None:
        with suppress(DatabaseUnavailable):  # the claim then ends by itself
            async with self._database.writing() as connection:
                await release_key(connection, claim)
