"""What a checkpoint reads follows the number of chains, not their length."""

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from app.audit.chain import genesis, link, new_chain
from app.audit.records import encode
from app.clock import month_of, utc_now
from app.database.engine import Database
from app.database.records import HEADS, ChainHead, chain_heads
from tests.audit.recording import FACTS, score

pytestmark = pytest.mark.anyio
CHAINS = 30


async def add_chains(database: Database, length: int) -> list[ChainHead]:
    appender = database.appender()
    await appender.connect()
    ends = []
    for _ in range(CHAINS):
        start = new_chain(month_of(utc_now()))
        records = [genesis(start, utc_now(), FACTS), *(encode(score()) for _ in range(length - 1))]
        rows, end = link(start, records)
        await appender.append(rows)
        ends.append(end)
    await appender.close()
    return ends


@pytest.fixture
async def ends(database: Database) -> list[ChainHead]:
    return [*await add_chains(database, 5), *await add_chains(database, 100)]


async def test_every_chain_has_its_end(database: Database, ends: list[ChainHead]) -> None:
    async with database.reading() as connection:
        assert await chain_heads(connection) == sorted(ends)
        assert await chain_heads(connection, "9999-12") == []


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_sqlite_reads_narrow_indexes_alone_and_works_as_much_for_long_chains(database: Database) -> None:
    work = []
    for length in (5, 100):
        await add_chains(database, length)
        with sqlite3.connect(database.file) as connection:
            work.append(steps(connection))
            plan = [line[-1] for line in connection.execute("EXPLAIN QUERY PLAN " + HEADS["sqlite"], {"since": ""})]
        connection.close()
    assert [line for line in plan if "SEARCH" in line or "SCAN" in line] == [
        line for line in plan if "USING COVERING INDEX audit_records_" in line and line.startswith("SEARCH")
    ]
    assert work[1] <= 2.1 * work[0]  # twice the chains, eleven times the records


def steps(connection: sqlite3.Connection) -> int:
    """Instructions of SQLite's machine that the query takes."""
    count = 0

    def counted() -> int:
        nonlocal count
        count += 1
        return 0

    connection.set_progress_handler(counted, 1)
    rows = connection.execute(HEADS["sqlite"], {"since": ""}).fetchall()
    connection.set_progress_handler(None, 1)
    assert rows
    return count


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_postgresql_visits_the_first_and_the_last_row_of_each_chain(
    database: Database, ends: list[ChainHead]
) -> None:
    async with database.engine.connect() as connection:
        await connection.execute(text("ANALYZE audit_records"))
        query = "EXPLAIN (ANALYZE, FORMAT JSON) " + HEADS["postgresql"].replace(":since", "''")
        plan: Any = await connection.scalar(text(query))
        await connection.rollback()
    nodes = list(scans((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]))
    assert sum(visited(node) for node in nodes) == 2 * len(ends)
    assert {node["Node Type"] for node in nodes if visited(node)} <= {
        "Index Scan", "Index Only Scan", "Bitmap Heap Scan",
    }  # fmt: skip


def scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "Relation Name" in node:
        yield node
    for child in node.get("Plans", ()):
        yield from scans(child)


def visited(node: dict[str, Any]) -> int:
    return int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
