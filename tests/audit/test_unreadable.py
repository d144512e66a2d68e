"""Records that are hashed as they should be and that no reader can take: they are named, and stop nobody."""

import json
from typing import Any

import pytest

from app.audit.chain import DamageKind, genesis, link, new_chain
from app.audit.lookup import find_records
from app.audit.records import MAX_DEPTH, Kind, NewRecord, Record, encode
from app.audit.verify import RowDamageKind, verify_tables
from app.clock import month_of, utc_now
from app.database.engine import Database
from app.database.records import Filter, add_records
from tests.audit.recording import FACTS, score, verified

pytestmark = pytest.mark.anyio
MARK = {"odd": "here"}
NOT_TO_BE_READ = {
    "a number without end": b"1e999",
    "an integer of 5000 digits": b"1" * 5000,
    "half a character": b'"\\ud800"',
    "a level too many": b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
    "nested so that it can be read and not written": b"[" * 800 + b"]" * 800,
    "nested without end": b"[" * 20_000 + b"]" * 20_000,
}
ODD = pytest.mark.parametrize("odd", list(NOT_TO_BE_READ.values()), ids=list(NOT_TO_BE_READ))


def with_odd(record: Record, odd: bytes, instead_of: bytes = b'"here"') -> Record:
    assert instead_of in record.payload
    return record._replace(payload=record.payload.replace(instead_of, odd))


async def add(database: Database, *records: Record, odd: bytes = b"") -> None:
    """A chain as whoever may add rows could add it: every hash fits. `odd` goes into its genesis."""
    head, now = new_chain(month_of(utc_now())), utc_now()
    first = genesis(head, now, {**FACTS, **MARK})
    rows, _ = link(head, [with_odd(first, odd) if odd else first, *records])
    async with database.writing() as connection:
        await add_records(connection, rows)


async def shown(database: Database) -> set[tuple[str, str | None]]:
    async with database.reading() as connection:
        records = (await find_records(connection, Filter())).records
    json.dumps(records)
    return {(record["kind"], record.get("damage", {}).get("kind")) for record in records}


@ODD
@pytest.mark.parametrize("part", ["input", "output"])
async def test_a_record_that_cannot_be_read_is_damaged(database: Database, part: str, odd: bytes) -> None:
    changed: dict[str, Any] = {part: MARK}
    await add(database, with_odd(encode(score(**changed)), odd))
    assert [(one.damage, one.seq) for one in (await verified(database)).findings] == [(DamageKind.MUTATED, 2)]
    assert await shown(database) == {("genesis", None), ("score", "MUTATED")}


@ODD
async def test_a_genesis_that_cannot_be_read_is_damaged(database: Database, odd: bytes) -> None:
    await add(database, odd=odd)
    assert [(one.damage, one.seq) for one in (await verified(database)).findings] == [(DamageKind.MUTATED, 1)]
    assert await shown(database) == {("genesis", "MUTATED")}


async def test_what_is_deep_and_can_be_read_is_no_damage(database: Database) -> None:
    deep, wide = b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1), b"[" + b",".join([b"[]"] * 10 * MAX_DEPTH) + b"]"
    await add(database, *(with_odd(encode(score(input=MARK)), odd) for odd in (deep, wide)))
    assert (await verified(database)).intact


@pytest.mark.parametrize("kind", ["key", "activation"])
@pytest.mark.parametrize("odd", [b"1e999", b"[]"])
async def test_a_silent_record_of_a_row_is_named(database: Database, kind: Kind, odd: bytes) -> None:
    record = with_odd(encode(NewRecord(kind, utc_now(), "x", output=MARK)), odd, b'{"odd":"here"}')
    await add(database, record)
    async with database.reading() as connection:
        [finding] = await verify_tables(connection)
    assert (finding.damage, finding.record_id) == (RowDamageKind.UNREADABLE, record.record_id)
    assert [one.damage for one in (await verified(database)).findings] == [DamageKind.MUTATED]
