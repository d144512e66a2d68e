"""Answers to requests with an Idempotency-Key, stored for a day.

A request first claims its key, by one statement that only one process can win. The claim ends by itself, so that a
process that dies never leaves a key in progress. Neither the key nor the request is stored, only keyed hashes of them.
"""

import secrets
from typing import NamedTuple

from sqlalchemy import text

from app.database.engine import Connection

CLAIM_BYTES = 16
PORTION = 500  # rows that are deleted at once: others write between two portions
# A row that has expired, an answer or an abandoned claim, is taken over; any other one is left as it is.
CLAIM = text("""
    INSERT INTO idempotent_answers (key_sha256, request_sha256, claim, expires_at)
    VALUES (:key, :request, :claim, :until)
    ON CONFLICT (key_sha256) DO UPDATE
        SET request_sha256 = :request, claim = :claim, expires_at = :until, answer = NULL
        WHERE idempotent_answers.expires_at <= :now
""")
FIND = text("SELECT request_sha256, answer FROM idempotent_answers WHERE key_sha256 = :key")
STORE = text(
    "UPDATE idempotent_answers SET answer = :answer, expires_at = :until "
    "WHERE key_sha256 = :key AND claim = :claim AND answer IS NULL"
)
RELEASE = text("DELETE FROM idempotent_answers WHERE key_sha256 = :key AND claim = :claim AND answer IS NULL")
# The second condition is for a row that another process takes over while this statement waits for it.
DELETE_EXPIRED = text("""
    DELETE FROM idempotent_answers WHERE key_sha256 IN (
        SELECT key_sha256 FROM idempotent_answers WHERE expires_at <= :now ORDER BY expires_at LIMIT :portion
    ) AND expires_at <= :now
""")


class Claim(NamedTuple):
    """The right to answer a request."""

    key_sha256: bytes
    claim: bytes


class StoredAnswer(NamedTuple):
    request_sha256: bytes
    answer: bytes | None  # None: it is in progress


async def claim_key(
    connection: Connection, key_sha256: bytes, request_sha256: bytes, now: str, until: str
) -> Claim | StoredAnswer | None:
    """A claim, or what another request with this key has left; None if that has vanished meanwhile."""
    mine = Claim(key_sha256, secrets.token_bytes(CLAIM_BYTES))
    values = {"key": key_sha256, "request": request_sha256, "claim": mine.claim, "now": now, "until": until}
    if (await connection.execute(CLAIM, values)).rowcount == 1:
        return mine
    return await _find(connection, key_sha256)


async def store_answer(connection: Connection, claim: Claim, answer: bytes, until: str) -> Claim | StoredAnswer | None:
    """The claim, if it still held. If it had ended: what another request with this key has left, as `claim_key`."""
    values = {"key": claim.key_sha256, "claim": claim.claim, "answer": answer, "until": until}
    if (await connection.execute(STORE, values)).rowcount == 1:
        return claim
    return await _find(connection, claim.key_sha256)


async def _find(connection: Connection, key_sha256: bytes) -> StoredAnswer | None:
    found = (await connection.execute(FIND, {"key": key_sha256})).one_or_none()
    return StoredAnswer(*found) if found else None


async def release_key(connection: Connection, claim: Claim) -> None:
    """After a failure, so that the request can be repeated at once."""
    await connection.execute(RELEASE, {"key": claim.key_sha256, "claim": claim.claim})


async def delete_expired(connection: Connection, now: str) -> int:
    """How many were deleted: a portion at most."""
    return (await connection.execute(DELETE_EXPIRED, {"now": now, "portion": PORTION})).rowcount
