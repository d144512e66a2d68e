"""Records to write, and what the tests do to a database that holds them."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Executable, insert, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit import changes
from app.audit.author import Author, CheckpointLog
from app.audit.chain import genesis, link, new_chain
from app.audit.checkpoint import Checkpoint
from app.audit.records import NewRecord, encode
from app.audit.signed_checkpoint import Signer
from app.audit.signing_key import SigningKey
from app.audit.verify import ChainVerification, Coverage, verify_chains
from app.audit.writer import AuditWriter
from app.clock import month_of, utc_now
from app.database.activations import Activation
from app.database.engine import Database
from app.database.records import AuditRow, ChainHead, add_records, stream_chains
from app.database.tables import audit_records
from app.domain.card import ModelRef
from app.errors import AuditUnavailable

MODEL = ModelRef("SoV", "1.0.0", "ab" * 32)
ROUTE = "/v1/sites/{site}/score"
NOT_HUNG = 30  # seconds; far above every bound of the writer
FACTS = {"host": "ward-7", "pid": 4711}
TRIGGERS = {
    "postgresql": ["audit_records_no_change ON audit_records"],  # on every partition too
    "sqlite": ["audit_records_no_update", "audit_records_no_delete", "audit_records_no_replace"],
}


def author() -> Author:
    """Of a process with a key and a data folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="normalcy-author-"))
    return Author(FACTS, Signer(SigningKey.generate(), "a database"), CheckpointLog(folder))


def score(request_id: str = "request-1", **changes: Any) -> NewRecord:
    fields: dict[str, Any] = {
        "kind": "score",
        "at": utc_now(),
        "principal": "key:abcdefgh",
        "route": ROUTE,
        "status": 200,
        "request_id": request_id,
        "item": 0,
        "model": MODEL,
        "input": {"age_years": 55.0, "diameter_mm": 41.0},
        "output": {"expected_ns": 1.93},
    }
    return NewRecord(**fields | changes)


def refusal() -> NewRecord:
    return NewRecord("refusal", utc_now(), "key:abcdefgh", ROUTE, 422, "request-2", output={"codes": ["out_of_range"]})


def change(connection: AsyncConnection) -> changes.Change:
    return changes.Change(connection, author())


async def activate(connection: AsyncConnection, ref: ModelRef = MODEL, by: str = "key:x", **more: Any) -> Activation:
    """As another process would."""
    return await changes.activate(change(connection), ref, NewRecord("activation", utc_now(), by), **more)


async def write_until_served(writer: AuditWriter) -> UUID:
    async with asyncio.timeout(NOT_HUNG):
        while True:
            try:
                return (await writer.write([score("after")]))[0]
            except AuditUnavailable:
                await asyncio.sleep(0.05)


async def all_rows(database: Database) -> list[AuditRow]:
    async with database.reading() as connection:
        return [row async for page in stream_chains(connection) for row in page]


async def verified(database: Database, checkpoint: Checkpoint | None = None) -> ChainVerification:
    async with database.reading() as connection:
        return await verify_chains(stream_chains(connection), Coverage(*[checkpoint] if checkpoint else []))


@asynccontextmanager
async def unguarded(database: Database) -> AsyncIterator[AsyncConnection]:
    """As someone with all rights, who has removed the triggers first. Undone at the end of the block."""
    async with database.engine.connect() as connection:
        await connection.execution_options(writes=True)
        for trigger in TRIGGERS[database.dialect]:
            await connection.execute(text(f"DROP TRIGGER {trigger}"))
        yield connection
        await connection.rollback()


async def tampered(
    database: Database, *statements: Executable, checkpoint: Checkpoint | None = None
) -> ChainVerification:
    """What verification finds after these statements, which are undone again."""
    async with unguarded(database) as connection:
        for statement in statements:
            await connection.execute(statement)
        return await verify_chains(stream_chains(connection), Coverage(*[checkpoint] if checkpoint else []))


async def add_unsigned_chain(database: Database, age: timedelta = timedelta()) -> ChainHead:
    """As a version without signatures did, or somebody without the key."""
    when = utc_now() - age
    head = new_chain(month_of(utc_now()))
    rows, end = link(head, [genesis(head, when, FACTS), encode(score("old", at=when))])
    async with database.writing() as connection:
        await add_records(connection, rows)
    return end


def inserting(rows: list[AuditRow]) -> Executable:
    return insert(audit_records).values([row._asdict() for row in rows])


@asynccontextmanager
async def writes_blocked(database: Database) -> AsyncIterator[None]:
    """Someone else holds the lock that every commit of records needs."""
    async with database.engine.connect() as connection:  # for longer than a service would
        await connection.execution_options(writes=True)
        await connection.begin()
        if database.dialect == "postgresql":
            await connection.execute(text("LOCK TABLE audit_records IN SHARE ROW EXCLUSIVE MODE"))
        yield
