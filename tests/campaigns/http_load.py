"""Answers a second over HTTP, beside bare servers and without the audit; time to start; memory.

    python -m tests.campaigns.http_load --out docs/http.md

Rounds alternate between all servers, each round in another order, and only ratios within a round are compared: the
machine may be busy with other things, but hardly with others from one second to the next.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.campaigns.http_load_report import render
from tests.campaigns.http_load_servers import CLIENT_CPU, PATIENCE_SECONDS, Running, contestants, migrated, pin, service
from tests.postgres import PostgresServer, postgres_server

WARM_UP_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Round:
    connections: int
    rates: Mapping[str, float]  # answers a second, by server
    costs: Mapping[str, float]  # µs of processor that the server took for an answer


@dataclass(frozen=True, slots=True)
class Findings:
    rounds: Sequence[Round]
    seconds: float  # of each measurement
    start_seconds: Mapping[str, Sequence[float]]  # to the first answer, by database
    resident_mb: Mapping[str, float]  # after the load, by database
    load_average: tuple[float, float]  # of the machine before and after, one minute


def measure(rounds: int, seconds: float, connections: Sequence[int], starts: int) -> Findings:
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, postgres_server() as postgres:
        folder = Path(name)
        start_seconds = _starts(folder, postgres, starts)
        with contestants(folder, postgres) as servers:
            for server in servers.values():
                ask(server, max(connections), min(WARM_UP_SECONDS, seconds))
            found = [each for number in range(rounds) for each in _round(servers, number, connections, seconds)]
            resident = {name: servers[name].resident_mb for name in start_seconds}
    return Findings(found, seconds, start_seconds, resident, (before, os.getloadavg()[0]))


def ask(server: Running, connections: int, seconds: float) -> tuple[float, float]:
    """Answers a second, every one of them a 200, and µs of processor for each."""
    before = server.processor_seconds
    module = "tests.campaigns.http_load_client"
    command = [*pin(CLIENT_CPU), sys.executable, "-m", module, str(server.port), str(connections), str(seconds)]
    patience = seconds + PATIENCE_SECONDS
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=patience)  # noqa: S603 - our own program
    found = json.loads(done.stdout)
    if found["refusals"]:
        raise RuntimeError(f"{found['refusals']} of {found['answers']} answers were refusals.")
    took = server.processor_seconds - before
    return found["answers"] / found["seconds"], took / found["answers"] * 1e6


def _round(servers: Mapping[str, Running], number: int, connections: Sequence[int], seconds: float) -> Iterator[Round]:
    names = list(servers)
    turned = names[number % len(names) :] + names[: number % len(names)]
    for count in connections:
        found = {name: ask(servers[name], count, seconds) for name in turned}
        rates, costs = ({name: pair[part] for name, pair in found.items()} for part in (0, 1))
        yield Round(count, rates, costs)


def _starts(folder: Path, postgres: PostgresServer, starts: int) -> dict[str, list[float]]:
    """Each with a new folder, so that SQLite's includes its migration; PostgreSQL is migrated by a command before."""
    seconds: dict[str, list[float]] = {"SQLite": [], "PostgreSQL": []}
    with migrated(postgres) as url:
        for number in range(starts):
            for name, address in (("SQLite", ""), ("PostgreSQL", url)):
                with service(folder / f"start-{name}-{number}", address) as started:
                    seconds[name].append(started.seconds)
    return seconds


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.http_load", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.5, help="of each measurement")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--starts", type=int, default=5)
    given = parser.parse_args(arguments)
    findings = measure(given.rounds, given.seconds, given.connections, given.starts)
    words = [word for word in arguments if word not in ("--out", str(given.out))]
    given.out.write_text(render(findings, " ".join(["python -m tests.campaigns.http_load", *words])), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
