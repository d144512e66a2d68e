"""Answers a second over HTTP, beside bare servers and without the audit; time to start; memory.

    python -m tests.campaigns.http_load --out docs/http.md
    python -m tests.campaigns.http_load --out build/compared.md --against REV

The second form compares this source tree with a commit of it, each on both databases; about five minutes. Rounds
alternate between all servers, each round in another order, and only ratios within a round are compared: the machine
may be busy with other work, but its load changes little from one second to the next.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.campaigns import http_compare, http_load_report
from tests.campaigns.http_load_report import Results, Round
from tests.campaigns.reports import command_line, write_report
from tests.campaigns.servers import Running, free_port, migrated, run_load, running, service
from tests.postgres import PostgresServer, postgres_server

WARM_UP_SECONDS = 0.5
CONNECTIONS = (1, 16, 64)
COMPARED_CONNECTIONS = (1, 64)
ROUNDS, COMPARED_ROUNDS = 5, 11


def measure(rounds: int, seconds: float, connections: Sequence[int], starts: int) -> Results:
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, postgres_server() as postgres:
        folder = Path(name)
        start_seconds = _starts(folder, postgres, starts)
        with all_servers(folder, postgres) as servers:
            for server in servers.values():
                run_load(server, max(connections), min(WARM_UP_SECONDS, seconds))
            found = [each for number in range(rounds) for each in _round(servers, number, connections, seconds)]
            resident = {name: servers[name].resident_mb for name in start_seconds}
    return Results(found, seconds, start_seconds, resident, (before, os.getloadavg()[0]))


def _round(servers: Mapping[str, Running], number: int, connections: Sequence[int], seconds: float) -> Iterator[Round]:
    names = list(servers)
    rotated = names[number % len(names) :] + names[: number % len(names)]
    for count in connections:
        yield Round(count, {name: run_load(servers[name], count, seconds) for name in rotated})


@contextmanager
def all_servers(folder: Path, postgres: PostgresServer) -> Iterator[dict[str, Running]]:
    """All five at once; those without load are idle."""
    module = ("-m", "tests.campaigns.comparison_servers")
    with migrated(postgres) as url, ExitStack() as stack:

        def bare(kind: str, *files: str) -> Running:
            port = free_port()
            return stack.enter_context(running((*module, kind, str(port), *files), port, {}))

        unaudited = stack.enter_context(service(folder / "off", arguments=(*module, "unaudited")))
        answer = folder / "answer.json"
        answer.write_text(json.dumps(unaudited.answer))
        yield {
            "audit off": unaudited,
            "SQLite": stack.enter_context(service(folder / "sqlite")),
            "PostgreSQL": stack.enter_context(service(folder / "postgres", url)),
            "hello": bare("hello"),
            "FastAPI route": bare("route", str(answer)),
        }


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
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.http_load",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--against", metavar="REV", help="compare with this commit instead")
    parser.add_argument("--rounds", type=int, help=f"{ROUNDS}, or {COMPARED_ROUNDS} with --against")
    parser.add_argument("--seconds", type=float, default=2.5, help="of each measurement")
    parser.add_argument("--connections", type=int, nargs="+", help="1 16 64, or 1 64 with --against")
    parser.add_argument("--starts", type=int, default=5, help="without --against: how often to time the start")
    given = parser.parse_args(arguments)
    command = command_line("tests.campaigns.http_load", arguments, given.out)
    if given.against:
        connections = given.connections or COMPARED_CONNECTIONS
        comparison = http_compare.measure(given.against, given.rounds or COMPARED_ROUNDS, given.seconds, connections)
        write_report(given.out, http_compare.render(comparison, command))
    else:
        results = measure(given.rounds or ROUNDS, given.seconds, given.connections or CONNECTIONS, given.starts)
        write_report(given.out, http_load_report.render(results, command))


if __name__ == "__main__":
    main(sys.argv[1:])
