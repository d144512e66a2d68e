"""The fault campaign: the real service, under load, killed, frozen and starved; and what the audit holds afterwards.

python -m tests.campaigns.faults --out docs/faults.md
"""

import argparse
import asyncio
import sys
from pathlib import Path

from app.benchmark.stamp import stamp
from tests.campaigns import faults_struck as faults
from tests.campaigns.faults_report import holds, report
from tests.campaigns.faults_run import Found, Part, run_part
from tests.campaigns.faults_service import MUTANT
from tests.postgres import PrivateServer, postgres_server

SEED = 2026
PLAN = (
    Part("kill -9", "SQLite", 50, faults.kill_9, drops_connections=True),
    Part("kill -9", "PostgreSQL", 50, faults.kill_9, drops_connections=True),
    Part("database crashes (immediate stop)", "PostgreSQL", 15, faults.database_crashes),
    Part("connections freeze for 3.5 s", "PostgreSQL", 12, faults.backends_freeze),
    Part("database freezes for 3.5 s", "PostgreSQL", 12, faults.database_freezes),
    Part("no room on the disk for 1 s", "SQLite", 15, faults.disk_fills),
    Part("SIGTERM, as in a rolling update", "SQLite", 12, faults.told_to_stop),
    Part("SIGTERM, as in a rolling update", "PostgreSQL", 12, faults.told_to_stop),
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
            parser.error("the campaign stops its PostgreSQL, so it needs one of its own")
        real, mutants = ([run(part, chosen.seed, server) for part in plan] for plan in (PLAN, MUTANTS))
        made_by = stamp("make faults", chosen.seed)
    chosen.out.write_text(report(real, mutants, made_by), encoding="utf-8")
    noticed = {found.part.database for found in mutants if found.tally.missing}
    good = all(map(holds, real)) and noticed == {found.part.database for found in mutants}
    return 0 if good else 1


def run(part: Part, seed: int, server: PrivateServer) -> Found:
    return asyncio.run(run_part(part, seed, server))


if __name__ == "__main__":
    sys.exit(main())
