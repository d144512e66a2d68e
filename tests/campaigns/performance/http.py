"""Answers a second and waiting times of single scores, beside bare servers, less audit, and other model servers."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from tests.campaigns.http_load import all_servers
from tests.campaigns.performance.section import Goal, Plot, Section, Table
from tests.campaigns.reports import spread
from tests.campaigns.servers import OUR_TREE, Load, Running, free_port, run_load, running, service
from tests.postgres import postgres_server

# Rounds, seconds of each measurement, connections.
FULL, QUICK = (5, 2.0, (1, 16, 64)), (2, 1.0, (1, 64))
WARM_UP_SECONDS = 0.5
PEERS = ("litserve", "bentoml", "mlflow")
PEERS_PYTHON = OUR_TREE / ".venv" / "peers" / "bin" / "python"
ROUTE, OURS = "FastAPI route", ("SQLite", "PostgreSQL")
MIN_SHARES = {64: 0.75, 1: 0.25}
MIN_PEER_RATIO = 3.0
TEXT = """\
*hello* is uvicorn with an application that answers five bytes. *FastAPI route* reads the same request with pydantic and
writes a constant answer of full size through its response model; it computes and records nothing. *audit off* is this
service with a writer that does nothing. *one insert* is this service on SQLite with a commit for each request instead
of one for all that wait. *SQLite* and *PostgreSQL* are this service with everything on. Other model servers run the
same predict function without audit, keys or metrics: LitServe with one worker, BentoML as an ASGI application on
uvicorn, MLflow with a small wrapper around the function.

Each server is pinned to one processor, the load to the other. Rounds alternate between all servers, and ratios are
taken within a round: median (lowest to highest)."""

Value = Callable[[Mapping[str, Load], str], float]
Rounds = dict[int, list[dict[str, Load]]]  # by connections


def measure(quick: bool) -> Section:
    rounds, seconds, connections = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name, postgres_server() as postgres:
        folder = Path(name)
        with all_servers(folder, postgres) as ours, more_servers(folder) as (others, missing):
            servers = {**ours, **others}
            memory = {name: f"{servers[name].resident_mb:.0f}" for name in OURS}
            starts = {name: f"{servers[name].seconds:.2f}" for name in OURS}
            for server in servers.values():
                run_load(server, max(connections), WARM_UP_SECONDS)
            found: Rounds = {count: [] for count in connections}
            for number in range(rounds):
                for count in connections:
                    found[count].append(_round(servers, number, count, seconds))
            loaded = {name: f"{servers[name].resident_mb:.0f}" for name in OURS}
    process = [[name, starts[name], memory[name], loaded[name]] for name in OURS]
    return Section(
        "Single scores over HTTP",
        "\n\n".join([TEXT, *missing]),
        [
            _table(found, "share of the FastAPI route", lambda one, name: one[name].rate / one[ROUTE].rate, ".0%"),
            _table(found, "answers a second", lambda one, name: one[name].rate, ",.0f"),
            _table(found, "median wait, ms", lambda one, name: one[name].p50_ms, ".2f"),
            _table(found, "99% of waits below, ms", lambda one, name: one[name].p99_ms, ".2f"),
            Table(["", "start to first answer, s", "resident at first, MB", "resident after the load, MB"], process),
        ],
        [
            Plot("http-rate", "Answers a second", "connections", "answers a second", {
                name: [(count, median(one[name].rate for one in found[count])) for count in connections]
                for name in servers if name != "hello"
            }),
        ],
        list(_goals(found, list(others))),
    )  # fmt: skip


def _round(servers: Mapping[str, Running], number: int, connections: int, seconds: float) -> dict[str, Load]:
    names = list(servers)
    rotated = names[number % len(names) :] + names[: number % len(names)]
    return {name: run_load(servers[name], connections, seconds) for name in rotated}


def _table(found: Rounds, title: str, value: Value, pattern: str) -> Table:
    names = list(next(iter(found.values()))[0])
    rows = [
        [name, *(spread([value(one, name) for one in rounds], pattern) for rounds in found.values())]
        for name in sorted(names)
    ]
    return Table([title, *(f"{count} connection{'s' * (count > 1)}" for count in found)], rows)


def _goals(found: Rounds, others: Sequence[str]) -> Iterator[Goal]:
    for count, least in MIN_SHARES.items():
        for name in OURS:
            share = median(one[name].rate / one[ROUTE].rate for one in found[count])
            what = f"{name}, {count} connection{'s' * (count > 1)}"
            yield Goal(what, f"at least {least:.0%} of the FastAPI route", f"{share:.0%}", share >= least)
    peers = [name for name in others if name in PEERS]
    for count in found if peers else ():
        ratio = median(_slowest(one, OURS) / max(one[name].rate for name in peers) for one in found[count])
        what = f"the slower database, {count} connection{'s' * (count > 1)}"
        aim = f"at least {MIN_PEER_RATIO:g} times the best other model server"
        yield Goal(what, aim, f"{ratio:.1f} times", ratio >= MIN_PEER_RATIO)


def _slowest(one: Mapping[str, Load], names: Sequence[str]) -> float:
    return min(one[name].rate for name in names)


@contextmanager
def more_servers(folder: Path) -> Iterator[tuple[dict[str, Running], list[str]]]:
    """One insert for each request, and those other model servers that start; and sentences about those that do not."""
    module = "tests.campaigns.comparison_servers"
    missing = []
    with ExitStack() as stack:
        found = {"one insert": stack.enter_context(service(folder / "one", arguments=("-m", module, "one-insert")))}
        for name in PEERS:
            if not PEERS_PYTHON.exists():
                missing.append(f"{name} was not measured: `make peers-env` had not been run.")
                continue
            port = free_port()
            arguments = ("-m", f"tests.campaigns.peers.{name}_server", str(port))
            try:
                found[name] = stack.enter_context(running(arguments, port, {}, python=str(PEERS_PYTHON)))
            except (RuntimeError, AssertionError) as error:
                missing.append(f"{name} was not measured: {json.dumps(str(error))[:200]}")
        yield found, missing
