"""Finding records again."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.lookup import MAX_PAGE, as_dicts, find_records
from app.audit.writer import AuditWriter
from app.clock import timestamp
from app.database.engine import Database
from app.database.records import BY_TIME, LINKED, Filter, stream_records
from app.database.tables import audit_records
from app.domain.card import ModelRef
from app.errors import InvalidCursor
from tests.audit.recording import score, unguarded

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)  # apart from the time at which chains are opened


async def found(database: Database, wanted: Filter) -> list[tuple[str, int]]:
    async with database.reading() as connection:
        page = await find_records(connection, wanted)
    return [(record["request_id"], record["item"]) for record in page.records]


async def test_a_request_is_found_with_all_its_records(writer: AuditWriter, database: Database) -> None:
    await writer.write([score("mine", item=item) for item in range(3)])
    await writer.write([score("other")])
    await writer.write([score("mine", item=0)])  # a trace id may repeat
    assert await found(database, Filter(request_id="mine")) == [("mine", 0), ("mine", 1), ("mine", 2), ("mine", 0)]
    assert await found(database, Filter(request_id="nobody's")) == []


async def test_a_record_has_its_payload_and_its_position(writer: AuditWriter, database: Database) -> None:
    (record_id,) = await writer.write([score("mine")])
    async with database.reading() as connection:
        (record,) = (await find_records(connection, Filter(request_id="mine"))).records
    assert record["record_id"] == str(record_id)
    assert record["output"] == {"expected_ns": 1.93}
    assert record["chain"]["seq"] == 2
    assert len(record["chain"]["row_hash"]) == 64


async def test_time_and_site_restrict(writer: AuditWriter, database: Database) -> None:
    other_site = ModelRef("AA", "1.0.0", "cd" * 32)
    for minute in range(4):
        at = NOW + timedelta(minutes=minute)
        await writer.write([score(f"s{minute}", at=at), score(f"a{minute}", at=at, model=other_site)])
    start, end = (timestamp(NOW + timedelta(minutes=minute)) for minute in (1, 3))
    times = Filter(start=start, end=end)
    assert await found(database, times) == [("s1", 0), ("a1", 0), ("s2", 0), ("a2", 0)]
    assert await found(database, Filter(start=start, end=end, site="AA")) == [("a1", 0), ("a2", 0)]


async def test_pages_give_every_record_once_in_order(writer: AuditWriter, database: Database) -> None:
    await writer.write([score(str(number), at=NOW + timedelta(seconds=number // 3)) for number in range(25)])
    cursor, seen, pages = None, [], 0
    async with database.reading() as connection:
        while True:
            page = await find_records(connection, Filter(site="SoV"), cursor, limit=4)
            assert len(page.records) <= 4
            seen += [record["request_id"] for record in page.records]
            pages += 1
            if page.cursor is None:
                break
            cursor = page.cursor
    assert seen == [str(number) for number in range(25)]
    assert pages == 7


async def test_a_page_has_a_largest_and_a_smallest_size(writer: AuditWriter, database: Database) -> None:
    async with database.reading() as connection:
        assert len((await find_records(connection, Filter(), limit=0)).records) == 1
        assert (await find_records(connection, Filter(), limit=MAX_PAGE * 1000)).cursor is None


@pytest.mark.parametrize("at", ["", "yesterday", "9999", "2026-01-01 12:00:00 é\U0001f600"])
async def test_a_list_continues_after_a_time_that_somebody_changed(
    writer: AuditWriter, database: Database, at: str
) -> None:
    await writer.write([score(str(number), at=NOW) for number in range(3)])
    async with unguarded(database) as connection:
        await connection.execute(update(audit_records).where(audit_records.c.request_id == "1").values(at=at))
        cursor, seen = None, []
        for _ in range(3):
            page = await find_records(connection, Filter(site="SoV"), cursor, limit=1)
            seen += [(record["request_id"], record["damaged"]) for record in page.records]
            cursor = page.cursor
    assert cursor is None
    assert sorted(seen) == [("0", False), ("1", True), ("2", False)]


@pytest.mark.parametrize(
    "cursor",
    [
        "?",
        "a",
        "AAAA",
        "é",
        base64.urlsafe_b64encode(b"2026-11-15T10:30:00.123Z '; DROP").decode(),
        base64.urlsafe_b64encode(b'["2026-11-15T10:30:00.123Z"]').decode(),
        base64.urlsafe_b64encode(b'["2026-11-15T10:30:00.123Z","no id"]').decode(),
        base64.urlsafe_b64encode(b'["\\u0000","01900000-0000-7000-8000-000000000000"]').decode(),
        base64.urlsafe_b64encode(b"[" * 20_000).decode(),
    ],
)
async def test_a_cursor_from_nowhere_is_refused(database: Database, cursor: str) -> None:
    async with database.reading() as connection:
        with pytest.raises(InvalidCursor):
            await find_records(connection, Filter(), cursor)


async def test_a_record_is_checked_before_it_is_shown(writer: AuditWriter, database: Database) -> None:
    await writer.write([score("first"), score("mine"), score("last")])
    seq, payload = audit_records.c.seq, audit_records.c.payload
    async with unguarded(database) as connection:
        honest = (await connection.execute(select(payload).where(seq == 3))).scalar_one()
        forged = honest.replace(b'"diameter_mm":41.0', b'"diameter_mm":31.0')
        for change, kind in (
            (update(audit_records).where(seq == 3).values(payload=forged), "MUTATED"),
            (update(audit_records).where(seq == 3).values(payload=b"{}"), "MUTATED"),
            (update(audit_records).where(seq == 3).values(payload=b"\xff"), "MUTATED"),
            (update(audit_records).where(seq == 3).values(principal="somebody else"), "MUTATED"),
            (update(audit_records).where(seq == 3).values(row_hash=bytes(32)), "MUTATED"),
            (update(audit_records).where(seq == 3).values(seq=-(2**63)), "GAP"),
            (delete(audit_records).where(seq == 2), "GAP"),
        ):
            attempt = await connection.begin_nested()
            assert await damages(connection) == {"first": None, "mine": None, "last": None}
            await connection.execute(change)
            assert (await damages(connection))["mine"] == kind
            await attempt.rollback()


async def damages(connection: AsyncConnection) -> dict[str, str | None]:
    """The same in a page and in a stream."""
    wanted = Filter(site="SoV")
    shown = (await find_records(connection, wanted)).records
    pages = [page async for page in stream_records(connection, wanted)]
    streamed = [record for page in pages for linked in page for record in as_dicts(linked)]
    assert shown == streamed
    assert [record["damaged"] for record in shown] == ["damage" in record for record in shown]
    return {record["request_id"]: record["damage"]["kind"] if record["damaged"] else None for record in shown}


async def test_of_a_payload_that_is_not_a_record_the_columns_are_shown(writer: AuditWriter, database: Database) -> None:
    await writer.write([score("mine", item=4)])
    async with unguarded(database) as connection:
        for payload in (b"\xff", b"{}", b'{"kind": 1, "model": "none"}', b"[]"):
            await connection.execute(update(audit_records).where(audit_records.c.seq == 2).values(payload=payload))
            (record,) = (await find_records(connection, Filter(request_id="mine"))).records
            assert (record["damaged"], record["kind"], record["item"]) == (True, "score", 4)


async def test_looking_up_reads_the_row_before_each_row_by_its_key(writer: AuditWriter, database: Database) -> None:
    """Whatever the size of the audit: the plan has no step that walks through the records."""
    await writer.write([score() for _ in range(3)])
    query = LINKED.where(audit_records.c.request_id == "request-1").order_by(*BY_TIME).limit(100)
    text_of = str(query.compile(dialect=database.engine.dialect, compile_kwargs={"literal_binds": True}))
    async with database.engine.connect() as connection:
        if database.dialect == "postgresql":
            await connection.execute(text("SET LOCAL enable_seqscan = off"))  # six rows are read faster as they lie
        explain = {"postgresql": "EXPLAIN", "sqlite": "EXPLAIN QUERY PLAN"}[database.dialect]
        plan = [str(line[-1]) for line in await connection.execute(text(f"{explain} {text_of}"))]
    before = [line for line in plan if " before" in line]
    assert before
    assert [line for line in plan if "Seq Scan" in line or "SCAN" in line] == []
    assert all("Index" in line or "SEARCH" in line for line in before), plan
