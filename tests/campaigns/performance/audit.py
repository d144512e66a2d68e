"""What one more record costs as the audit grows, and what it costs to find one."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from shutil import rmtree
from statistics import median

from app.audit.lookup import find_records
from app.audit.records import NewRecord
from app.audit.writer import AuditWriter
from app.database.engine import open_database
from app.database.migrate import upgrade
from app.database.records import Filter
from app.database.sqlite import FILE_NAME
from app.observability import make_metrics
from app.settings import Settings, load_settings
from tests.audit.recording import author
from tests.campaigns.audit_growth import a_score, fill_postgres, fill_sqlite, rows_of
from tests.campaigns.performance.section import Plot, Section, Table
from tests.postgres import postgres_server

CHAIN = 1000  # records of a chain
SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (1_000, 10_000)
REPEATS = 60
TEXT = """\
Each database is filled with chains of 1,000 real scores, past its triggers. Then the service's own writer commits one
record after the other, each by itself, and the service's own query looks for a request id; medians of 60, in ms on the
clock."""


def measure(quick: bool) -> Section:
    sizes = QUICK_SIZES if quick else SIZES
    rows: list[list[str]] = []
    lines: dict[str, list[tuple[float, float]]] = {"SQLite": [], "PostgreSQL": []}
    with tempfile.TemporaryDirectory() as name, postgres_server() as postgres:
        record = asyncio.run(a_score(Path(name) / "score"))
        for size in sizes:
            folder = Path(name) / str(size)
            embedded = load_settings({"NORMALCY_DATA_DIR": str(folder)})
            _add(rows, lines, "SQLite", size, asyncio.run(_measure(embedded, record, size)))
            rmtree(folder)
            with postgres.new_database() as database:
                given = {"NORMALCY_DATA_DIR": str(folder), "NORMALCY_DATABASE_URL": postgres.url(database)}
                _add(rows, lines, "PostgreSQL", size, asyncio.run(_measure(load_settings(given), record, size)))
    head = ["database", "records", "commit of one, ms", "find one, ms"]
    plot = Plot("audit-growth", "Commit of one record as the audit grows", "records", "ms", lines)
    return Section("The audit as it grows", TEXT, [Table(head, rows)], [plot])


def _add(
    rows: list[list[str]], lines: dict[str, list[tuple[float, float]]], name: str, size: int, took: tuple[float, float]
) -> None:
    rows.append([name, f"{size:,}", *(f"{milliseconds:.2f}" for milliseconds in took)])
    lines[name].append((size, took[0]))


async def _measure(settings: Settings, record: NewRecord, size: int) -> tuple[float, float]:
    database = open_database(settings, statement_seconds=None)
    try:
        await upgrade(database)
    finally:
        await database.close()
    filled = rows_of(record, size // CHAIN, CHAIN)
    if settings.database_url:
        await fill_postgres(settings.database_url, filled)
    else:
        fill_sqlite(settings.data_dir / FILE_NAME, filled)
    database = open_database(settings)
    writer = AuditWriter(database.appender(), author(), make_metrics())
    try:
        await writer.start()
        commits = await _milliseconds(lambda: writer.write([record]))
        async with database.reading() as connection:
            found = await _milliseconds(lambda: find_records(connection, Filter(request_id="no-such-request")))
    finally:
        await writer.stop()
        await database.close()
    return commits, found


async def _milliseconds(work: Callable[[], Awaitable[object]]) -> float:
    took = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        await work()
        took.append((time.perf_counter() - began) * 1e3)
    return median(took)
