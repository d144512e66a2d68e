"""What honest callers notice of an attack: throughput, memory, liveness, and the rows that the attack leaves.

    python -m tests.campaigns.hostile_load --out docs/hostile-load.md

Each round measures 64 honest scoring connections alone and beside the attack, in alternating order, and only ratios
within a round are compared. About seven minutes.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import func, select

from app.database.engine import Database
from app.database.tables import audit_records
from app.settings import Settings, load_settings
from tests.campaigns.hostile_load_report import Attack, Measured, Results, Round, render
from tests.campaigns.reports import command_line, write_report
from tests.campaigns.servers import (
    Running,
    client_result,
    create_key,
    get,
    migrated,
    service,
    start_client,
)
from tests.postgres import postgres_server
from tests.web.serving import on_database

DATABASES = ("SQLite", "PostgreSQL")
HONEST_CONNECTIONS = 64
HEAD_START_SECONDS = 0.7  # the attack begins before the honest load, so that it covers the whole measurement
AFTER_SECONDS = 1.3
SETTLING_SECONDS = 2.5  # for the last summed refusals to be written
SAMPLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    server: Running
    settings: Settings
    key: str

    def refusals_on_record(self) -> int:
        async def count(database: Database) -> int:
            async with database.reading() as connection:
                query = select(func.count()).select_from(audit_records).where(audit_records.c.kind == "refusal")
                return int((await connection.execute(query)).scalar_one())

        return on_database(self.settings, count)


def measure(attacks: Sequence[Attack], databases: Sequence[str], rounds: int, quiet_seconds: float) -> Results:
    before = os.getloadavg()[0]
    found: list[Round] = []
    baseline: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, targets(Path(name), databases) as all_targets:
        for target in all_targets:
            baseline[target.name] = run_beside(target, quiet_seconds, None).peak_mb
        for attack in attacks:
            for number in range(rounds):
                found += [run_round(target, attack, number, quiet_seconds) for target in all_targets]
    return Results(attacks, found, baseline, (before, os.getloadavg()[0]))


def run_round(target: Target, attack: Attack, number: int, quiet_seconds: float) -> Round:
    def quiet() -> Measured:
        return run_beside(target, quiet_seconds, None)

    first = quiet() if number % 2 == 0 else None
    rows = target.refusals_on_record()
    beside = run_beside(target, attack.seconds, attack)
    time.sleep(SETTLING_SECONDS)
    rows = target.refusals_on_record() - rows
    return Round(attack.name, target.name, first or quiet(), beside, rows)


def run_beside(target: Target, seconds: float, attack: Attack | None) -> Measured:
    """Run the honest load, beside the attack if there is one, and sample the server."""
    attackers = None
    if attack is not None:
        lasts = HEAD_START_SECONDS + seconds + AFTER_SECONDS
        attackers = start_client("attack_client", attack.name, target.server.port, attack.connections, lasts)
        time.sleep(HEAD_START_SECONDS)
    port, began, took = target.server.port, time.perf_counter(), target.server.processor_seconds
    honest = start_client("load_client", port, HONEST_CONNECTIONS, seconds, target.key)
    with probing(port) as slowest:
        peak = 0.0
        while honest.poll() is None:
            peak = max(peak, target.server.resident_mb)
            time.sleep(SAMPLE_SECONDS)
    share = (target.server.processor_seconds - took) / (time.perf_counter() - began)
    found = client_result(honest)
    did = client_result(attackers) if attackers is not None else None
    return Measured(found["answers"] / found["seconds"], share, peak, max(slowest), did)


@contextmanager
def probing(port: int) -> Iterator[list[float]]:
    """Request /health/live on a new connection ten times a second; yields how long each answer took."""
    took, is_over = [0.0], threading.Event()

    def probe() -> None:
        while not is_over.wait(SAMPLE_SECONDS):
            began = time.perf_counter()
            assert get(port, "/health/live")[0] == 200
            took.append(time.perf_counter() - began)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield took
    finally:
        is_over.set()
        thread.join()


@contextmanager
def targets(folder: Path, databases: Sequence[str]) -> Iterator[list[Target]]:
    with ExitStack() as stack:
        found = []
        for name in databases:
            url = owner_url = ""
            if name != "SQLite":
                server = stack.enter_context(postgres_server())
                url = stack.enter_context(migrated(server))
                owner_url = server.url(urlsplit(url).path.lstrip("/"))  # the service's own login may make no key
            started = stack.enter_context(service(folder / name, url))
            environment = {"NORMALCY_DATA_DIR": str(folder / name), "NORMALCY_DATABASE_URL": owner_url}
            found.append(
                Target(name, started, load_settings(environment), create_key(started.port, environment, ["score"]))
            )
        yield found


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.hostile_load", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of the honest load alone, and beside pipelined requests"
    )
    parser.add_argument("--flood-seconds", type=float, default=13.0, help="of the honest load beside refused requests")
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=DATABASES)
    given = parser.parse_args(arguments)
    attacks = (Attack("pipelined", 20, given.seconds), Attack("refused", 64, given.flood_seconds))
    results = measure(attacks, given.databases, given.rounds, given.seconds)
    write_report(given.out, render(results, command_line("tests.campaigns.hostile_load", arguments, given.out)))


if __name__ == "__main__":
    main(sys.argv[1:])
