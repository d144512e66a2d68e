"""The fault campaign: the real service under load, killed, frozen and without disk space; then its audit is checked.

python -m tests.campaigns.faults --out docs/faults.md
"""

import argparse
import asyncio
import sys
from pathlib import Path

from app.benchmark.report_header import report_header
from tests.campaigns import fault_injection as faults
from tests.campaigns.faults_report import holds, report
from tests.campaigns.faults_run import Part, Result, run_part
from tests.campaigns.reports import write_report
from tests.campaigns.service_process import MUTANT
from tests.postgres import PrivateServer, postgres_server

SEED = 2026
PLAN = (
    Part("kill -9", "SQLite", 50, faults.kill_9, drops_connections=True),
    Part("kill -9", "PostgreSQL", 50, faults.kill_9, drops_connections=True),
    Part("database crashes (immediate stop)", "PostgreSQL", 15, faults.database_crashes),
    Part("connections freeze for 3.5 s", "PostgreSQL", 12, faults.backends_freeze),
    Part("database freezes for 3.5 s", "PostgreSQL", 12, faults.database_freezes),
    Part("no room on the disk for 1 s", "SQLite", 15, faults.disk_fills),
    Part("SIGTERM, as in a rolling update", "SQLite", 12, faults.terminate),
    Part("SIGTERM, as in a rolling update", "PostgreSQL", 12, faults.terminate),
)
MUTANTS = (
    Part("kill -9", "SQLite", 8, faults.kill_9, drops_connections=True, program=MUTANT),
    Part("no room on the disk for 1 s", "SQLite", 4, faults.disk_fills, program=MUTANT),
    Part("database crashes (immediate stop)", "PostgreSQL", 4, faults.database_crashes, program=MUTANT),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the report, in Markdown")
    parser.add_argument("--seed", type=int, default=SEED)
    chosen = parser.parse_args()
    with postgres_server() as server:
        if not isinstance(server, PrivateServer):
            parser.error("the campaign stops its PostgreSQL, so it needs a private one")
        real, mutants = ([run(part, chosen.seed, server) for part in plan] for plan in (PLAN, MUTANTS))
        header = report_header("make faults", chosen.seed)
    write_report(chosen.out, report(real, mutants, header))
    detected = {result.part.database for result in mutants if result.tally.missing}
    all_held = all(map(holds, real)) and detected == {result.part.database for result in mutants}
    return 0 if all_held else 1


def run(part: Part, seed: int, server: PrivateServer) -> Result:
    return asyncio.run(run_part(part, seed, server))


if __name__ == "__main__":
    sys.exit(main())
