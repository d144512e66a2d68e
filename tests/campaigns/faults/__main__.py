"""Run the fault campaign, row by row; the results are JSON files, and docs/faults.md is rendered from them.

    python -m tests.campaigns.faults                       every row that has no result yet, hours in all
    python -m tests.campaigns.faults --only F3 F11         these rows; --again: also if they have a result
    python -m tests.campaigns.faults --only F1 --cycles 20 --seed 7 --database SQLite
    python -m tests.campaigns.faults --only F4 --cycles 2 --mutant acknowledge_before_commit
    python -m tests.campaigns.faults --render              docs/faults.md and docs/faults.json from the results

The exit code is 0 if every chosen row held, now or in its result. Rows that run against a broken build (--mutant) are
not saved.
"""

import argparse
import asyncio
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from app.clock import timestamp, utc_now
from app.observability import configure_logging
from tests.campaigns.faults.mutants import MUTANTS, program_of
from tests.campaigns.faults.report import render
from tests.campaigns.faults.results import FOLDER, Result, as_result, read_all, read_reported, save
from tests.campaigns.faults.row import BOTH, Context, Database, Finding, Row
from tests.campaigns.faults.rows import ROWS
from tests.campaigns.service_process import NORMALCY
from tests.postgres import PrivateServer, private_server, service_login

SEED = 2026
SHOWN = 300  # characters of an error, which may contain a whole log


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    if given.render:
        render(read_reported(given.docs) | read_all(given.results), given.docs)
        return 0
    chosen = [row for row in ROWS if row.is_chosen_by(given.only)]
    if not chosen:
        options().error("no row has this name; the names are " + ", ".join(row.slug for row in ROWS))
    if not any(given.database in (None, one) for row in chosen for one in row.databases):
        options().error(f"none of these rows runs on {given.database} alone; leave out --database")
    known = {} if given.again or given.mutant else read_all(given.results)
    results = []
    with ExitStack() as stack:
        server: PrivateServer | None = None
        for row in chosen:
            for database in (one for one in row.databases if given.database in (None, one)):
                if found := known.get((row.slug, database)):
                    sys.stderr.write(f"{row.slug}, {database}: has a result (--again runs it again)\n")
                    say(found)
                    results.append(found)
                    continue
                if database == "PostgreSQL" and server is None:
                    server = stack.enter_context(private_server())
                    stack.enter_context(service_login(server))
                result = run(row, database, server, given)
                if not given.mutant:
                    save(given.results, result)
                say(result)
                if server is not None and not server.is_running:  # the row failed before it started it again
                    server.start()
                results.append(result)
    return 0 if all(result.held for result in results) else 1


def run(row: Row, database: Database, server: PrivateServer | None, given: argparse.Namespace) -> Result:
    program, owner_sql = (program_of(given.mutant), MUTANTS[given.mutant].owner_sql) if given.mutant else (NORMALCY, "")
    ends_at = time.monotonic() + 60 * given.minutes if given.minutes else float("inf")
    began = timestamp(utc_now())
    with tempfile.TemporaryDirectory(prefix="normalcy-faults-") as folder:
        context = Context(
            row.slug,
            database,
            given.seed,
            given.cycles or row.cycles,
            Path(folder),
            server,
            program,
            owner_sql,
            ends_at,
        )
        return as_result(row, database, given.seed, found_by(row, context), began)


def found_by(row: Row, context: Context) -> Finding:
    """A row that cannot be run has a result too: the report must not show the one that it had before."""
    try:
        return asyncio.run(row.run(context))
    except Exception as error:  # noqa: BLE001 - whatever failed, the next row can still be run
        traceback.print_exc()
        message = " ".join(f"{type(error).__name__}: {error}".split())
        return Finding(0, {}, [f"the row failed: {message[:SHOWN]}"])


def say(result: Result) -> None:
    figures = ", ".join(f"{name} {value}" for name, value in result.figures.items())
    verdict = "held" if result.held else f"NOT HELD: {'; '.join(result.unmet + result.late)}"
    sys.stdout.write(f"{result.row}, {result.database}, {result.cycles} cycles: {verdict}. {figures}\n")
    sys.stdout.flush()


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help="F1 to F18, or the full name of a row")
    parser.add_argument("--database", choices=BOTH)
    parser.add_argument("--cycles", type=int, help="instead of the number that the row asks for")
    parser.add_argument("--minutes", type=float, help="begin no cycle of a row later than this")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--again", action="store_true", help="also rows that have a result")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="run a broken build instead of the service")
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--render", action="store_true", help="write the report instead of running anything")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of the report")
    return parser


if __name__ == "__main__":
    configure_logging("error", sys.stderr)  # rows that use parts of the service in this process
    sys.exit(main(sys.argv[1:]))
