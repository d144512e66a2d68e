"""Steady load for a long time: memory, files, threads, tasks and connections must stay as they are."""

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]

from tests.campaigns.faults.cycles import verdict_unmet, verify
from tests.campaigns.faults.injection import connections_of
from tests.campaigns.faults.instrumented import program
from tests.campaigns.faults.row import Context, Figure, Finding
from tests.campaigns.faults.target import Target, started
from tests.campaigns.service_process import Verdict

CLIENTS, INTERVAL_SECONDS = 16, 0.2
SAMPLE_SECONDS = 5.0
WARM_SHARE = 1 / 3  # of the time, not judged
SLOPE_MB_PER_HOUR = 3.0  # 1 MB in the 20 minutes that are judged: less is the allocator
SPARE = 2  # files, threads, tasks and connections that may come and go at the instant of a sample


@dataclass(frozen=True)
class Sample:
    hours: float
    resident_mb: float
    files: int
    threads: int
    tasks: int | None  # None: the service has not counted them yet
    connections: int  # to PostgreSQL


async def run_soak(context: Context) -> Finding:
    file = context.folder / "tasks"
    os.environ["TASKS_FILE"] = str(file)
    seconds = min(60.0 * context.cycles, max(context.ends_at - time.monotonic(), SAMPLE_SECONDS))
    async with started(replace(context, program=program("tasks", context.program))) as target:
        arguments = (target.service.port, CLIENTS, seconds, INTERVAL_SECONDS)
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.campaigns.faults.paced_client", *map(str, arguments), stdout=PIPE
        )
        waiting, began = asyncio.create_task(client.communicate()), time.monotonic()
        samples: list[Sample] = []
        while not waiting.done():
            await asyncio.wait([waiting], timeout=SAMPLE_SECONDS)
            if not waiting.done():
                samples.append(await sample(target, file, time.monotonic() - began))
        load = json.loads((await waiting)[0])
        verdict = await verify(target)
    return judge(samples[int(WARM_SHARE * len(samples)) :], load, verdict, round(seconds / 60))


async def sample(target: Target, tasks: Path, seconds: float) -> Sample:
    process = psutil.Process(target.service.process.pid)
    counted = tasks.read_text() if tasks.exists() else ""
    count = int(counted) if counted else None
    resident = process.memory_info().rss / 2**20
    return Sample(
        seconds / 3600, resident, process.num_fds(), process.num_threads(), count, await connections_of(target)
    )


def judge(samples: Sequence[Sample], load: dict[str, float], verdict: Verdict, minutes: int) -> Finding:
    slope = float(np.polyfit([one.hours for one in samples], [one.resident_mb for one in samples], 1)[0])
    counted = ("files", "threads", "tasks", "connections")
    spans = {name: [value for one in samples if (value := getattr(one, name)) is not None] for name in counted}
    unmet = [f"{name} never counted" for name, values in spans.items() if not values]
    unmet += [f"{name} grew from {values[0]} to {values[-1]}" for name, values in spans.items() if grew(values)]
    unmet += [f"failed {load['failed']:,.0f}"] if load["failed"] else []
    unmet += verdict_unmet(verdict)
    late = [f"memory grows by {slope:.1f} MB an hour"] if slope > SLOPE_MB_PER_HOUR else []
    late += [f"refused {load['refused']:,.0f}"] if load["refused"] else []  # a commit took longer than 2 s
    figures: dict[str, Figure] = {
        "served": int(load["served"]),
        "refused": int(load["refused"]),
        "failed": int(load["failed"]),
        "p99": f"{1000 * load['p99']:.0f} ms",
        "memory": f"{samples[0].resident_mb:.1f} to {samples[-1].resident_mb:.1f} MB",
        "slope": f"{slope:+.2f} MB/h",
        **{name: f"{min(values)} to {max(values)}" if values else "–" for name, values in spans.items()},
    }
    return Finding(minutes, figures, unmet, late)


def grew(values: Sequence[int]) -> bool:
    """The last tenth never came down to what the first tenth had, with a few to spare."""
    tenth = max(len(values) // 10, 1)
    return bool(values) and min(values[-tenth:]) > max(values[:tenth]) + SPARE
