"""The tamper campaign: random changes of a signed audit, and clean audits that are verified while they are written.

    python -m tests.campaigns.tampering --out docs/tampering.md

Every change is refused by the database or found by both verifiers (`normalcy audit verify` and tools/verify_audit.py),
which must name the same kinds at the same rows. It runs in parts; each leaves a JSON file in the folder of results, and
a part whose file exists is not run again, so that an interrupted campaign continues where it stopped. Its fixed seeds
make every part repeatable: `--only "sqlite owner 3"` runs one of them.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from app.benchmark.report_header import report_header
from app.clock import utc_now
from app.database.engine import Database, open_database
from app.database.migrate import upgrade
from app.observability import configure_logging
from app.settings import Settings, load_settings
from tests.audit.both_verifiers import Auditor, crash, fill, open_writer
from tests.audit.recording import score
from tests.audit.tampering import TAMPERS, apply, read_stored
from tests.campaigns.reports import write_report
from tests.postgres import PostgresServer, postgres_server

SEED = 2026
DATABASES = ("sqlite", "postgresql")
BLOCK = 250  # tampers, or clean runs, of one part
AUDITS = 10  # tampers of one audit are BLOCK / AUDITS
WRITERS = 4
FASTER = 60.0  # the clock of clean runs, so that a checkpoint is due every second


@dataclass
class Result:
    part: str
    seconds: float = 0.0
    runs: int = 0
    found: dict[str, int] = field(default_factory=dict)  # by what was done
    refused: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    database: str
    work: str  # owner, service or clean
    block: int

    @property
    def name(self) -> str:
        return f"{self.database} {self.work} {self.block}"


def plan(tampers: int, clean: int) -> list[Part]:
    """A fifth of the tampers without the owner's rights; the parts of both databases alternate."""
    owner, service = round(tampers * 0.8 / 2 / BLOCK), round(tampers * 0.2 / 2 / BLOCK)
    sizes = {"owner": max(owner, 1), "service": max(service, 1), "clean": max(round(clean / 2 / BLOCK), 1)}
    parts = [Part(database, work, n) for work, size in sizes.items() for n in range(size) for database in DATABASES]
    return sorted(parts, key=lambda part: part.block)


@contextmanager
def new_audit(database: str, server: PostgresServer) -> Iterator[Settings]:
    with tempfile.TemporaryDirectory(prefix="tampering-") as folder:
        given = {"NORMALCY_DATA_DIR": f"{folder}/data"}
        if database == "sqlite":
            yield load_settings(given)
            return
        with server.new_database() as name:
            yield load_settings(given | {"NORMALCY_DATABASE_URL": server.url(name)})


async def tamper_block(part: Part, settings: Settings, pick: random.Random, result: Result) -> None:
    """As many tampers as one audit gets."""
    database = open_database(settings, statement_seconds=None)
    try:
        await upgrade(database)
        await fill(settings, database, pick)
        auditor = Auditor.of(settings, database, settings.data_dir.parent / "auditor")
        base = await read_stored(database)
        for _ in range(BLOCK // AUDITS):
            tamper = pick.choice(TAMPERS)
            tampered, expected = tamper(base, pick)
            result.runs += 1
            if not await apply(database, base, tampered, as_owner=part.work == "owner"):
                result.refused[tamper.__name__] = result.refused.get(tamper.__name__, 0) + 1
                continue
            found = await auditor.verify()
            if not found.kinds & expected:
                result.failures.append(f"{tamper.__name__}: expected {sorted(expected)}, found {sorted(found.kinds)}")
            elif found.by_service != found.by_tool:
                result.failures.append(f"{tamper.__name__}: the verifiers differ: {found}")
            else:
                result.found[tamper.__name__] = result.found.get(tamper.__name__, 0) + 1
            await apply(database, tampered, base, as_owner=True)
    finally:
        await database.close()


class FastClock:
    def __init__(self) -> None:
        self._start, self._began = utc_now(), time.monotonic()

    def __call__(self) -> datetime:
        return self._start + timedelta(seconds=(time.monotonic() - self._began) * FASTER)


async def clean_block(settings: Settings, pick: random.Random, result: Result) -> None:
    """Verifies again and again while writers come, write, seal, crash and go."""
    database = open_database(settings, statement_seconds=None)
    try:
        await upgrade(database)
        clock = FastClock()
        stop = asyncio.Event()
        writing = [asyncio.create_task(_write(settings, database, clock, pick, stop)) for _ in range(WRITERS)]
        await asyncio.sleep(0.5)
        for _ in range(BLOCK // AUDITS):
            auditor = Auditor.of(settings, database, settings.data_dir.parent / "auditor")  # copies, then reads
            found = await auditor.verify()
            result.runs += 1
            if found.by_service or found.by_tool:
                result.failures.append(f"a false alarm: {found}")
        stop.set()
        await asyncio.gather(*writing)
    finally:
        await database.close()


async def _write(
    settings: Settings, database: Database, clock: FastClock, pick: random.Random, stop: asyncio.Event
) -> None:
    while not stop.is_set():
        writer = await open_writer(settings, database, clock)
        for number in range(pick.randrange(30)):
            await writer.write([score(f"request-{number}", at=clock())])
            await asyncio.sleep(pick.random() * 0.1)
        await (writer.stop() if pick.random() < 0.7 else crash(writer))


def run(part: Part, seed: int, server: PostgresServer) -> Result:
    result, began = Result(part.name), time.monotonic()
    for audit in range(AUDITS):
        pick = random.Random(f"{seed} {part.name} {audit}")  # noqa: S311 - repeatable
        with new_audit(part.database, server) as settings:
            work = clean_block(settings, pick, result) if part.work == "clean" else None
            asyncio.run(work or tamper_block(part, settings, pick, result))
    result.seconds = round(time.monotonic() - began, 1)
    return result


EXPLANATION = """
Random changes of signed rows and checkpoints: with the rights of the owner of the tables, and with those of the service
(on SQLite, which has no logins: with the triggers in place). Each is refused by the database, or both `normalcy audit
verify` and `tools/verify_audit.py` find it with a copy of the signed checkpoints and the public key, and name the same
kinds of damage at the same rows. Clean runs verify an audit while four writers write, seal and crash.
"""


def report(results: list[Result], seed: int) -> list[str]:
    return [
        "# Tampering",
        "",
        *report_header("python -m tests.campaigns.tampering", seed),
        *EXPLANATION.splitlines(),
        "",
        "| database | rights | runs | found | refused | missed, false alarms, or the verifiers differ |",
        "|---|---|---|---|---|---|",
        *(_row(results, database, work) for database in DATABASES for work in ("owner", "service", "clean")),
        "",
        "| what was done | found | refused |",
        "|---|---|---|",
        *(f"| {name.replace('_', ' ')} | {found:,} | {refused:,} |" for name, found, refused in _by_tamper(results)),
        "",
        *_failures(results),
    ]


def _row(results: list[Result], database: str, work: str) -> str:
    of_row = [each for each in results if each.part.startswith(f"{database} {work} ")]
    runs, failures = sum(each.runs for each in of_row), sum(len(each.failures) for each in of_row)
    found, refused = (sum(sum(part.values()) for part in parts) for parts in _columns(of_row))
    rights = "clean, concurrent writers" if work == "clean" else work
    return f"| {database} | {rights} | {runs:,} | {found:,} | {refused:,} | {failures} |"


def _columns(results: list[Result]) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
    return [each.found for each in results], [each.refused for each in results]


def _by_tamper(results: list[Result]) -> list[tuple[str, int, int]]:
    found, refused = (Counter[str](), Counter[str]())
    for each in results:
        found.update(each.found)
        refused.update(each.refused)
    return [(name, found[name], refused[name]) for name in sorted(found | refused)]


def _failures(results: list[Result]) -> list[str]:
    lines = [f"- `{each.part}`: {failure}" for each in results for failure in each.failures]
    return ["## Failures", "", *lines] if lines else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the report, in Markdown")
    parser.add_argument("--results", type=Path, default=Path("build/tampering"), help="the folder of finished parts")
    parser.add_argument("--tampers", type=int, default=10_000)
    parser.add_argument("--clean", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", help="run this part only, whether it is finished or not")
    chosen = parser.parse_args()
    configure_logging("error", sys.stderr)
    chosen.results.mkdir(parents=True, exist_ok=True)
    parts = [part for part in plan(chosen.tampers, chosen.clean) if chosen.only in (None, part.name)]
    with postgres_server() as server:
        for part in parts:
            file = chosen.results / f"{chosen.seed}-{part.name.replace(' ', '-')}.json"
            if file.exists() and chosen.only is None:
                continue
            result = run(part, chosen.seed, server)
            file.write_text(json.dumps(asdict(result), indent=2) + "\n", "utf-8")
            sys.stderr.write(f"{part.name}: {result.runs} runs, {len(result.failures)} failures, {result.seconds} s\n")
    files = sorted(chosen.results.glob(f"{chosen.seed}-*.json"))
    results = [Result(**json.loads(file.read_text("utf-8"))) for file in files]
    write_report(chosen.out, report(results, chosen.seed))
    return 1 if any(result.failures for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
