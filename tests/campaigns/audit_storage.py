"""What a recorded score costs: bytes on disk, and processor time to deflate and to inflate its payload.

    python -m tests.campaigns.audit_storage --out docs/audit-storage.md

Real scores of random people are added to a database as a writer links them: one record for each score, and in blocks as
a batch records them; once deflated, and once plain, as payloads were stored before.
"""

import argparse
import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]

from app.audit.chain import genesis, link, new_chain
from app.audit.records import NewRecord, encode
from app.cli.common import caller
from app.clock import month_of, utc_now
from app.database.engine import open_database
from app.database.migrate import upgrade
from app.database.records import AuditRow, stored_row
from app.database.sqlite import FILE_NAME
from app.database.stored_payload import deflate, inflate
from app.formats.markdown import table
from app.formats.response import score_response
from app.inference.scoring import score_with_tails
from app.observability import configure_logging
from app.runtime.command import command_runtime
from app.runtime.runtime import Runtime
from app.schemas.request_columns import validate_items
from app.schemas.requests import ScoreRequest
from app.services.score_batch import BLOCK_ITEMS, Batch
from app.services.score_block import BlockModels, score_block
from app.services.score_measurements import ResolvedRequest, make_result, new_record
from app.settings import Settings, load_settings
from tests.campaigns.audit_growth import fill_postgres, fill_sqlite
from tests.campaigns.batch_cost import items
from tests.campaigns.reports import command_line, opening, write_report
from tests.postgres import postgres_server

EXPLANATION = """\
*Bytes a score* is what the database grew by for each score, indexes included, the write-ahead log not. *Deflate* and
*inflate* are microseconds of processor time for each score. A single record holds one response with its two sentences;
a block holds the items of a batch for one model, up to 1,000 in a request. Every score has numbers, a request id and a
patient reference of its own."""
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    rows: Sequence[AuditRow]
    scores: int

    def microseconds(self, work: Callable[[bytes], bytes], payloads: Sequence[bytes]) -> float:
        taken = []
        for _ in range(ROUNDS):
            began = time.thread_time()
            for payload in payloads:
                work(payload)
            taken.append(time.thread_time() - began)
        return min(taken) / self.scores * 1e6


async def kinds(folder: Path, count: int) -> list[Kind]:
    settings = load_settings({"NORMALCY_DATA_DIR": str(folder)})
    given = [item | {"subject": item["id"]} for item in items(count)]
    async with command_runtime(settings, "score") as runtime:
        await runtime.poller.start()
        single = [_single(runtime, settings, item) for item in given]
        batch, models = Batch(runtime, caller("score")), BlockModels(runtime)
        block: list[NewRecord] = []
        for start in range(0, count, BLOCK_ITEMS):
            requests = validate_items(given[start : start + BLOCK_ITEMS])
            block += batch.records(score_block(requests, await models.find(requests)), start)
    return [Kind(name, _rows(records), count) for name, records in (("single", single), ("block", block))]


def _single(runtime: Runtime, settings: Settings, item: dict[str, object]) -> NewRecord:
    body = {name: value for name, value in item.items() if name not in ("id", "site")}
    request = ScoreRequest.model_validate(body).for_site(str(item["site"]))
    resolved, who = (
        ResolvedRequest(runtime.loaded_models.find_current(request.site), request),
        caller("score"),
    )
    [scored] = score_with_tails(resolved.model, [request.query])
    response = score_response(who.request_id, make_result(runtime, resolved, scored, runtime.clock()))
    return new_record(runtime, who, resolved, response, runtime.clock())


def _rows(records: Sequence[NewRecord]) -> list[AuditRow]:
    start = new_chain(month_of(utc_now()))
    return link(start, [genesis(start, utc_now(), {}), *map(encode, records)])[0]


def growth(settings: Settings, rows: Sequence[AuditRow]) -> int:
    """Bytes by which the database grows."""
    migrating = open_database(settings, statement_seconds=None)
    asyncio.run(_upgraded(migrating))
    if settings.database_url:
        return asyncio.run(_postgres_growth(settings.database_url, rows))
    file = settings.data_dir / FILE_NAME
    before = _sqlite_bytes(file)
    fill_sqlite(file, rows)
    return _sqlite_bytes(file) - before


async def _upgraded(database: object) -> None:
    await upgrade(database)  # type: ignore[arg-type]
    await database.close()  # type: ignore[attr-defined]


def _sqlite_bytes(file: Path) -> int:
    connection = sqlite3.connect(file)
    [[pages]], [[size]] = (connection.execute(f"PRAGMA page_{what}").fetchall() for what in ("count", "size"))
    connection.close()
    return int(pages * size)


async def _postgres_growth(url: str, rows: Sequence[AuditRow]) -> int:
    connection = await asyncpg.connect(url)
    before = await connection.fetchval("SELECT pg_database_size(current_database())")
    await fill_postgres(url, rows)
    after = await connection.fetchval("SELECT pg_database_size(current_database())")
    await connection.close()
    return int(after - before)


def measure(count: int) -> Iterator[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as name, postgres_server() as postgres:
        for kind in asyncio.run(kinds(Path(name) / "score", count)):
            payloads = [row.payload for row in kind.rows]
            stored = {"plain": kind.rows, "deflated": [stored_row(row) for row in kind.rows]}
            times = {
                "plain": ("", ""),
                "deflated": (
                    f"{kind.microseconds(deflate, payloads):.1f}",
                    f"{kind.microseconds(inflate, [row.payload for row in stored['deflated']]):.1f}",
                ),
            }
            for form, rows in stored.items():
                payload = sum(len(row.payload) for row in rows) / count
                folder = Path(name) / f"{kind.name} {form}"
                embedded = growth(load_settings({"NORMALCY_DATA_DIR": str(folder)}), rows) / count
                with postgres.new_database() as database:
                    given = {"NORMALCY_DATA_DIR": str(folder), "NORMALCY_DATABASE_URL": postgres.url(database)}
                    server = growth(load_settings(given), rows) / count
                yield kind.name, form, f"{payload:,.0f}", f"{embedded:,.0f}", f"{server:,.0f}", *times[form]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.audit_storage", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--scores", type=int, default=10_000)
    given = parser.parse_args(arguments)
    before = os.getloadavg()[0]
    rows = list(measure(given.scores))
    head = (
        "record",
        "payload",
        "payload, bytes",
        "SQLite, bytes a score",
        "PostgreSQL, bytes a score",
        "deflate, µs",
        "inflate, µs",
    )
    command = command_line("tests.campaigns.audit_storage", arguments, given.out)
    lines = opening("What a recorded score takes on disk", command, (before, os.getloadavg()[0]))
    write_report(given.out, [*lines, EXPLANATION, "", *table(head, rows)])


if __name__ == "__main__":
    configure_logging("error", sys.stderr)
    main(sys.argv[1:])
