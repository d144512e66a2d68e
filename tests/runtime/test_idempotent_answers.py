import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from app.audit.encryption import DataKeys
from app.audit.recorded_request import SubjectHasher
from app.clock import utc_now
from app.database.engine import Connection, Database
from app.database.idempotent_answers import PORTION, claim_key, delete_expired
from app.errors import DatabaseUnavailable
from app.runtime import idempotent_answers
from app.runtime.idempotent_answers import IdempotentAnswers

pytestmark = pytest.mark.anyio
LONG_AGO = "2026-01-01T00:00:00.000Z"


@asynccontextmanager
async def deleting(database: Database) -> AsyncIterator[None]:
    answers = IdempotentAnswers(database, DataKeys(database, None, False), SubjectHasher(b"k" * 32), utc_now)
    task = asyncio.create_task(answers.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def add_expired(database: Database, number: int) -> None:
    async with database.writing() as connection:
        for each in range(number):
            await claim_key(connection, each.to_bytes(32, "big"), b"r", LONG_AGO, LONG_AGO)


async def stored(database: Database) -> int:
    async with database.reading() as connection:
        return await connection.scalar(text("SELECT count(*) FROM idempotent_answers")) or 0


async def wait_until_none_is_stored(database: Database) -> None:
    async with asyncio.timeout(20):
        while await stored(database):
            await asyncio.sleep(0.02)


async def test_a_whole_backlog_is_deleted_a_transaction_for_each_portion(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = []

    async def count(connection: Connection, now: str) -> int:
        deleted.append((connection, await delete_expired(connection, now)))
        return deleted[-1][1]

    monkeypatch.setattr(idempotent_answers, "delete_expired", count)
    await add_expired(database, 2 * PORTION + 1)
    async with deleting(database):
        await wait_until_none_is_stored(database)
    assert [number for _, number in deleted] == [PORTION, PORTION, 1]
    assert len({id(connection) for connection, _ in deleted}) == 3


async def test_a_failure_is_logged_and_deleting_goes_on(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [DatabaseUnavailable(), ValueError("secret")]

    async def fail_first(connection: Connection, now: str) -> int:
        if failures:
            raise failures.pop()
        return await delete_expired(connection, now)

    monkeypatch.setattr(idempotent_answers, "delete_expired", fail_first)
    monkeypatch.setattr(idempotent_answers, "DELETE_SECONDS", 0.01)
    await add_expired(database, 1)
    with capture_logs() as logs:
        async with deleting(database):
            await wait_until_none_is_stored(database)
    assert [(log["event"], log["log_level"], log["error"]) for log in logs] == [
        ("deleting stored answers failed", "warning", "ValueError"),
        ("deleting stored answers failed", "warning", "DatabaseUnavailable"),
    ]
    assert "secret" not in str(logs)
