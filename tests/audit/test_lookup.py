"""Finding records again."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from app.audit.lookup import LARGEST_PAGE, find_records
from app.audit.writer import AuditWriter
from app.database.engine import Database
from app.database.records import Filter
from app.database.tables import audit_records
from app.database.times import timestamp
from app.domain.card import ModelRef
from app.errors import CursorRefused
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


async def test_a_record_says_its_payload_and_its_place(writer: AuditWriter, database: Database) -> None:
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
        assert (await find_records(connection, Filter(), limit=LARGEST_PAGE * 1000)).cursor is None


@pytest.mark.parametrize(
    "cursor", ["?", "a", "AAAA", "é", base64.urlsafe_b64encode(b"2026-11-15T10:30:00.123Z '; DROP").decode()]
)
async def test_a_cursor_from_nowhere_is_refused(database: Database, cursor: str) -> None:
    async with database.reading() as connection:
        with pytest.raises(CursorRefused):
            await find_records(connection, Filter(), cursor)


async def test_a_damaged_payload_is_shown_as_such(writer: AuditWriter, database: Database) -> None:
    await writer.write([score("mine")])
    async with unguarded(database) as connection:
        await connection.execute(update(audit_records).where(audit_records.c.seq == 2).values(payload=b"\xff"))
        (record,) = (await find_records(connection, Filter(request_id="mine"))).records
    assert record["damaged"] is True
