"""A batch and a stream over HTTP, with everything on, and several replicas on one database."""

import asyncio
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

from tests.campaigns import batch_cost
from tests.campaigns.batch_cost import MAX_CPU_US, MAX_MEGABYTES, Measured
from tests.campaigns.performance.compute import Stages
from tests.campaigns.performance.section import Goal, Plot, Section, Table
from tests.campaigns.reports import spread
from tests.campaigns.servers import Load, Running, migrated, run_load, service
from tests.postgres import postgres_server

# Items of a batch, of a stream, batches, single requests.
FULL, QUICK = (10_000, 1_000_000, 9, 300), (10_000, 50_000, 3, 30)
# Numbers of replicas, rounds, seconds of each measurement, connections in all.
FULL_REPLICAS, QUICK_REPLICAS = ((1, 2, 4), 5, 2.0, 64), ((1, 2), 2, 1.0, 64)
WARM_UP_SECONDS = 0.5
TEXT = """\
The service runs in a process of its own with everything on, its audit on SQLite. *CPU* is the processor time of that
process from the socket to the socket, a measurement. *JSON alone* is msgspec parsing the same requests and printing the
same answers. The memory is the resident memory of the service during the stream above that after one batch, the largest
of samples 20 times a second."""
REPLICA_TEXT = """\
Services with everything on, all on one PostgreSQL database; single scores, the connections shared out among them. All
services share one processor, the load has the other, and PostgreSQL both: more replicas cannot answer more here. What
this shows is what they cost each other. *CPU* is the processor time of all services, an answer."""


def measure(quick: bool) -> Section:
    count, stream, turns, singles = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name:
        found = asyncio.run(batch_cost.measure(Path(name), count, stream, turns, singles))
    stages = Stages(count)
    alone = median(stages.run()["JSON alone"] for _ in range(turns))
    waits = [
        [name, f"{median(times):.1f}", f"{quantiles(times, n=100)[98]:.1f}"]
        for name, times in (("alone", found.alone_ms), ("beside batches", found.beside_ms))
    ]
    return Section(
        "Batches over HTTP",
        TEXT,
        [
            Table(
                ["CPU, µs a measurement", "", "times JSON alone"],
                [
                    [f"batch of {count:,}", spread(found.batch_us, ".1f"), f"{median(found.batch_us) / alone:.1f}"],
                    [f"stream of {stream:,} lines", f"{found.stream_us:.1f}", f"{found.stream_us / alone:.1f}"],
                    ["JSON alone", f"{alone:.1f}", "1.0"],
                ],
            ),
            Table(["single requests, ms", "median", "99% below"], waits),
        ],
        goals=_goals(found, count, stream),
    )


def _goals(found: Measured, count: int, stream: int) -> list[Goal]:
    cost, memory = median(found.batch_us), found.stream_megabytes
    batch, lines = f"batch of {count:,} over HTTP", f"stream of {stream:,} lines"
    return [
        Goal(batch, f"at most {MAX_CPU_US:g} µs of CPU a measurement", f"{cost:.1f} µs", cost <= MAX_CPU_US),
        Goal(lines, "no slower a measurement than the batch", f"{found.stream_us:.1f} µs", found.stream_us <= cost),
        Goal(lines, f"at most {MAX_MEGABYTES:g} MB above idle", f"{memory:.0f} MB", memory <= MAX_MEGABYTES),
    ]


def measure_replicas(quick: bool) -> Section:
    counts, rounds, seconds, connections = QUICK_REPLICAS if quick else FULL_REPLICAS
    found: dict[int, list[Sequence[Load]]] = {count: [] for count in counts}
    with tempfile.TemporaryDirectory() as name, postgres_server() as postgres, ExitStack() as stack:
        url = stack.enter_context(migrated(postgres))
        replicas = [stack.enter_context(service(Path(name) / str(k), url)) for k in range(max(counts))]
        _together(replicas, connections, WARM_UP_SECONDS)
        for _ in range(rounds):
            for count in counts:
                found[count].append(_together(replicas[:count], connections // count, seconds))
    rows = [
        [
            str(count),
            spread([sum(load.rate for load in loads) for loads in found[count]], ",.0f"),
            spread([_cost(loads) for loads in found[count]], ",.0f"),
            spread([max(load.p50_ms for load in loads) for loads in found[count]], ".1f"),
        ]
        for count in counts
    ]
    rates = [(float(count), median(sum(load.rate for load in loads) for loads in found[count])) for count in counts]
    return Section(
        "Replicas",
        REPLICA_TEXT,
        [Table(["replicas", "answers a second, all", "CPU, µs an answer", "median wait, ms"], rows)],
        [Plot("replicas", "Replicas on one database", "replicas", "answers a second", {"all": rates})],
    )


def _together(replicas: Sequence[Running], connections: int, seconds: float) -> Sequence[Load]:
    with ThreadPoolExecutor(len(replicas)) as threads:
        return list(threads.map(lambda one: run_load(one, max(1, connections), seconds), replicas))


def _cost(loads: Sequence[Load]) -> float:
    return sum(load.cost * load.rate for load in loads) / sum(load.rate for load in loads)
