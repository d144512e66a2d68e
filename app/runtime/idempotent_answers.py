"""Requests with an Idempotency-Key: each is answered once, and a repetition gets the stored answer for a day.

The order is: claim the key, compute, commit the audit record, store the answer, send it. If the process dies on the
way, the claim ends after a few seconds and the request can be repeated. It then has a second record; it never has an
answer without one. A process that stalls for longer than its claim sends the answer that another one has stored.

Key and request are stored as hashes under the subject key only: a request names a patient, and a plain hash of it could
be found by trying references.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from app.audit.encryption import DataKeys, owner_of
from app.audit.recorded_request import SubjectHasher
from app.clock import timestamp
from app.database.engine import Connection, Database
from app.database.idempotent_answers import (
    PORTION,
    Claim,
    StoredAnswer,
    claim_key,
    delete_expired,
    release_key,
    store_answer,
)
from app.errors import DatabaseUnavailable, IdempotencyKeyReused, StillAnswering
from app.observability import describe_failure

STORED = timedelta(hours=24)
CLAIMED = timedelta(seconds=10)  # a request is answered, or has failed, within 2.5 s
SPARE_SECONDS = 0.3  # beyond the deadline, to store the answer or release the key: a 503 leaves within 2.5 s
DELETE_SECONDS = 600.0
PAUSE_SECONDS = 0.05  # between two portions
OF_KEY, OF_REQUEST = b"normalcy idempotency key v1", b"normalcy repeated request v1"


class Answer(NamedTuple):
    body: bytes
    is_repeated: bool


class IdempotentAnswers:
    def __init__(
        self, database: Database, data_keys: DataKeys, hasher: SubjectHasher, clock: Callable[[], datetime]
    ) -> None:
        self._database, self._data_keys, self._hasher, self._clock = database, data_keys, hasher, clock

    async def answer(
        self,
        principal: str,
        key: bytes,
        request: bytes,
        work: Callable[[], Awaitable[bytes]],
        deadline: float,
        subject: Mapping[str, str] | None = None,
    ) -> Answer:
        """What `work` returns, or returned for the same key and request. `deadline` is in the time of the event loop.

        `subject` is the keyed hash of the patient reference, under whose key the answer is encrypted. Raises what
        `work` raises, StillAnswering, IdempotencyKeyReused, DatabaseUnavailable, RecordErased or RecordUnreadable.
        """
        key_sha256 = self._hasher.digest(OF_KEY, b"\0".join([principal.encode(), key]))
        request_sha256 = self._hasher.digest(OF_REQUEST, request)
        blinded = self._data_keys.blind(request_sha256)
        found = await self._claim(key_sha256, blinded if self._data_keys.encrypts else request_sha256, deadline)
        if isinstance(found, Claim):
            claim = found
            try:
                body = await work()
                found = await self._store(claim, body, subject, deadline)
            except Exception:
                await self._release(claim, deadline + SPARE_SECONDS)
                raise
            if isinstance(found, Claim):
                return Answer(body, is_repeated=False)
            # The claim had ended, and another process answered: only one answer leaves.
        if found is None:  # another process has just given it up
            raise StillAnswering
        if found.request_sha256 not in (blinded, request_sha256):  # encryption may have been on or off then
            raise IdempotencyKeyReused
        if found.answer is None:
            raise StillAnswering
        async with _until(deadline + SPARE_SECONDS):
            return Answer(await self._data_keys.open_answer(found.answer, key_sha256), is_repeated=True)

    async def _store(
        self, claim: Claim, body: bytes, subject: Mapping[str, str] | None, deadline: float
    ) -> Claim | StoredAnswer | None:
        stored = await self._encrypted(body, claim.key_sha256, subject, deadline)
        async with self._writing_until(deadline + SPARE_SECONDS) as connection:
            return await store_answer(connection, claim, stored, timestamp(self._clock() + STORED))

    async def _encrypted(
        self, body: bytes, key_sha256: bytes, subject: Mapping[str, str] | None, deadline: float
    ) -> bytes:
        if not self._data_keys.encrypts:
            return body
        owner = owner_of(subject, self._clock())
        return self._data_keys.seal_answer((await self._data_keys.get([owner], deadline))[owner], body, key_sha256)

    async def run(self) -> None:
        """Deletes what has expired."""
        while True:
            try:
                await self._delete_expired()
            except Exception as error:  # noqa: BLE001 - after any failure deleting must go on
                structlog.get_logger("answers").warning("deleting stored answers failed", **describe_failure(error))
            await asyncio.sleep(DELETE_SECONDS)

    async def _delete_expired(self) -> None:
        """Each portion in a transaction of its own, which ends soon and stays deleted whatever happens to the next."""
        deleted = PORTION
        while deleted == PORTION:
            async with self._database.writing() as connection:
                deleted = await delete_expired(connection, timestamp(self._clock()))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _claim(self, key_sha256: bytes, request_sha256: bytes, deadline: float) -> Claim | StoredAnswer | None:
        now = self._clock()
        async with self._writing_until(deadline) as connection:
            until = timestamp(now + CLAIMED)
            return await claim_key(connection, key_sha256, request_sha256, timestamp(now), until)

    async def _release(self, claim: Claim, deadline: float) -> None:
        with suppress(DatabaseUnavailable):  # the claim then ends by itself
            async with self._writing_until(deadline) as connection:
                await release_key(connection, claim)

    @asynccontextmanager
    async def _writing_until(self, deadline: float) -> AsyncIterator[Connection]:
        async with _until(deadline), self._database.writing() as connection:
            yield connection


@asynccontextmanager
async def _until(deadline: float) -> AsyncIterator[None]:
    """For work with the database."""
    try:
        async with asyncio.timeout_at(deadline):
            yield
    except TimeoutError:
        raise DatabaseUnavailable from None
