"""What a checkpoint costs as the audit grows: it follows the number of chains, not the number of records.

    python -m tests.campaigns.audit_growth --out docs/audit-growth.md

Every database is filled at once, past its triggers, with chains as a writer links them, full of one real answer. Then
the service's own code queries where the chains end and takes a checkpoint, as it does once a minute.
"""

import argparse
import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from statistics import median

import asyncpg  # type: ignore[import-untyped]
import msgspec

from app.audit.author import FOLDER
from app.audit.chain import genesis, link, new_chain
from app.audit.records import NewRecord, encode
from app.cli.common import caller
from app.clock import month_of, utc_now
from app.database.engine import Database, open_database
from app.database.migrate import upgrade
from app.database.records import AuditRow, chain_heads, stored_row, stream_chains
from app.domain.card import ModelRef
from app.formats.markdown import table
from app.observability import configure_logging, make_metrics
from app.runtime.checkpoints import Checkpoints
from app.runtime.command import command_runtime
from app.schemas.requests import ScoreRequest
from app.services.score_measurements import score_measurement
from app.settings import Settings, load_settings
from tests.campaigns.reports import command_line, opening, spread, write_report
from tests.postgres import postgres_server
from tests.web.serving import READING

MAX_SECONDS = 0.2  # for the ends of 10,000 chains among 600,000 records
EXPLANATION = """\
Once a minute a service writes down where every chain of the audit ends. *Ends* is the query alone, with its rows read;
*checkpoint* is all of it: the query, the root over all ends, and the file, synchronised to the disk. Both run as in a
service, with its deadline of 2 s for a statement. Records are real scores. Medians, in brackets the fastest and the
slowest repeat. The processor's time is that of the service's process, without PostgreSQL's own: on a machine with more
work than processors the difference to the clock is waiting."""
SIZES = ("1000x60", "10000x6", "10000x60")  # chains x records of each
INSERT = f"INSERT INTO audit_records VALUES ({', '.join('?' * len(AuditRow._fields))})"  # noqa: S608 - no input in it


@dataclass(frozen=True, slots=True)
class Result:
    database: str
    chains: int
    records: int
    heads_seconds: Sequence[float]
    heads_processor_seconds: Sequence[float]  # of the service's process
    checkpoint_seconds: Sequence[float]


async def a_score(folder: Path) -> NewRecord:
    """A real answer of the shipped model, as it is recorded."""
    settings = load_settings({"NORMALCY_DATA_DIR": str(folder)})
    async with command_runtime(settings, "score") as service:
        await service.poller.start()
        await score_measurement(service, caller("score"), ScoreRequest.model_validate(READING).for_site("SoV"))
        async with service.database.reading() as connection:
            rows = [row async for page in stream_chains(connection) for row in page]
    recorded = msgspec.json.decode(next(row.payload for row in rows if row.kind == "score"))
    return NewRecord(
        kind="score",
        at=utc_now(),
        principal="abcdefgh",
        route="/v1/sites/{site}/score",
        status=200,
        request_id=recorded["request_id"],
        model=ModelRef(**recorded["model"]),
        input=recorded["input"],
        output=recorded["output"],
    )


def rows_of(record: NewRecord, chains: int, length: int) -> Iterator[AuditRow]:
    """In the order of the key, which is the fastest to add."""
    for start in sorted(new_chain(month_of(record.at)) for _ in range(chains)):
        records = [genesis(start, record.at, {}), *(encode(record) for _ in range(length - 1))]
        yield from link(start, records)[0]


def fill_sqlite(file: Path, rows: Iterable[AuditRow]) -> None:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("DROP TRIGGER audit_records_no_replace")
    connection.execute("BEGIN")
    connection.executemany(INSERT, ((row[0], row[1].hex, row[2], row[3].hex, *row[4:]) for row in rows))
    connection.execute("COMMIT")
    connection.close()


async def fill_postgres(url: str, rows: Iterable[AuditRow]) -> None:
    connection = await asyncpg.connect(url)
    await connection.copy_records_to_table("audit_records", records=rows)
    await connection.execute("VACUUM ANALYZE audit_records")  # a server does it by itself after so many rows
    await connection.close()


async def measure_one(settings: Settings, record: NewRecord, size: str, repeats: int) -> Result:
    chains, length = map(int, size.split("x"))
    migrating = open_database(settings, statement_seconds=None)
    await upgrade(migrating)
    await migrating.close()
    rows = map(stored_row, rows_of(record, chains, length))
    if settings.database_url:
        await fill_postgres(settings.database_url, rows)
    database = open_database(settings)  # with the deadlines of a service
    if not settings.database_url:
        fill_sqlite(database.file, rows)
    try:
        ends, processor = await _timed(lambda: _heads(database, chains), repeats)
        taken, _ = await _timed(lambda: _checkpoint(database, settings.data_dir), repeats)
    finally:
        await database.close()
    name = "PostgreSQL" if settings.database_url else "SQLite"
    return Result(name, chains, chains * length, ends, processor, taken)


async def _timed(work: Callable[[], Awaitable[None]], repeats: int) -> tuple[list[float], list[float]]:
    """By the clock, and of the processor."""
    await work()
    seconds, processor = [], []
    for _ in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        await work()
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    return seconds, processor


async def _heads(database: Database, chains: int) -> None:
    async with database.reading() as connection:
        assert len(await chain_heads(connection)) == chains


async def _checkpoint(database: Database, data_dir: Path) -> None:
    """Into an empty folder, so that it is written each time."""
    rmtree(data_dir / FOLDER, ignore_errors=True)
    checkpoints = Checkpoints(database, data_dir, utc_now, make_metrics())
    await checkpoints.take()
    assert not checkpoints.has_failed


def measure(sizes: Sequence[str], repeats: int) -> list[Result]:
    found = []
    with tempfile.TemporaryDirectory() as name, postgres_server() as postgres:
        record = asyncio.run(a_score(Path(name) / "score"))
        for size in sizes:
            folder = Path(name) / size
            embedded = load_settings({"NORMALCY_DATA_DIR": str(folder)})
            found.append(asyncio.run(measure_one(embedded, record, size, repeats)))
            rmtree(folder)
            with postgres.new_database() as database:
                given = {"NORMALCY_DATA_DIR": str(folder), "NORMALCY_DATABASE_URL": postgres.url(database)}
                found.append(asyncio.run(measure_one(load_settings(given), record, size, repeats)))
    return found


def render(results: Sequence[Result], load_average: tuple[float, float], command: str) -> list[str]:
    largest = max(one.records for one in results)
    slowest = max(median(one.heads_seconds) for one in results if one.records == largest)
    verdict = "Reached" if slowest <= MAX_SECONDS else "Not reached"
    head = ("database", "chains", "records", "ends, s", "of it processor, s", "checkpoint, s")
    rows = (
        (
            one.database,
            f"{one.chains:,}",
            f"{one.records:,}",
            spread(one.heads_seconds, ".3f"),
            f"{median(one.heads_processor_seconds):.3f}",
            spread(one.checkpoint_seconds, ".3f"),
        )
        for one in results
    )
    return [
        *opening("What a checkpoint costs as the audit grows", command, load_average),
        EXPLANATION,
        "",
        *table(head, rows),
        f"Aim: the ends of the largest audit within {MAX_SECONDS} s on both databases. {verdict}: {slowest:.3f} s.",
    ]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.audit_growth", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="CHAINSxRECORDS", help="records of each chain")
    parser.add_argument("--turns", type=int, default=9)
    given = parser.parse_args(arguments)
    before = os.getloadavg()[0]
    results = measure(given.sizes, given.turns)
    command = command_line("tests.campaigns.audit_growth", arguments, given.out)
    write_report(given.out, render(results, (before, os.getloadavg()[0]), command))


if __name__ == "__main__":
    configure_logging("error", sys.stderr)
    main(sys.argv[1:])
