"""What pictures cost: time of each kind over HTTP, and the memory of the service over many of them.

    python -m tests.campaigns.charts --out docs/charts.md

One client on one connection to `normalcy serve` with the shipped models on SQLite. Every picture is of another patient,
and every one with a score is recorded, as in use. Then the calculator in headless Chromium: from submit to the pictures
of both sites, again and again, and the size of its first view.
"""

import argparse
import asyncio
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]

from app.formats.markdown import table
from tests.campaigns.reports import command_line, opening, write_report
from tests.campaigns.service_process import ServiceProcess
from tests.web.browsing import chromium, opened
from tests.web.calculator import MEASURE, fill

MAX_SVG_MS, MAX_MB = 60.0, 250.0  # of a picture after warm-up; of the serving process
MAX_PAGE_MS = 300.0  # from submit to the pictures on the page
MAX_FIRST_VIEW_KB = 50.0  # over the wire, until the calculator is ready
GROWTH_MB = 5.0  # between the first tenth and the last that still counts as flat
SAMPLES = 10
CHART, MAP = "/v1/sites/SoV/chart", "/v1/sites/SoV/reliability-map"
SVG, PNG = "image/svg+xml", "image/png"
EXPLANATION = """\
Each row is one kind of request, from sending it to its last byte, on one connection, with the audit record committed
where there is a score. The first picture of a process is shown apart. *Processor* is the mean time that the service
computed for one, without the process that renders PNG: on a busy machine the rest of the median is waiting."""


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    path: str
    accept: str
    share: int  # of every 20 pictures
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)  # seconds of the serving process


def kinds() -> list[Kind]:
    return [
        Kind("reference, SVG", f"{CHART}?picture=reference", SVG, 6),
        Kind("density, SVG", f"{CHART}?picture=density", SVG, 5),
        Kind("visits, SVG", f"{CHART}?picture=visits", SVG, 4),
        Kind("data and all pictures, JSON", CHART, "application/json", 2),
        Kind("reliability map, SVG", f"{MAP}?sex=male", SVG, 2),
        Kind("reference, PNG, 1280 pixels wide", f"{CHART}?picture=reference", PNG, 1),
    ]


@dataclass(frozen=True, slots=True)
class Result:
    kinds: Sequence[Kind]
    first_seconds: float
    memory_mb: Sequence[float]  # of the serving process, SAMPLES + 1 times
    child_mb: float  # of the process that renders PNG, at most
    pictures: int
    page_ms: Sequence[float]  # from submit to the pictures of both sites on the page; infinite without them
    first_view_bytes: int


async def measure(pictures: int, page_runs: int, folder: Path) -> Result:
    service = ServiceProcess({"NORMALCY_DATA_DIR": str(folder)})
    await service.start()
    try:
        process = psutil.Process(service.process.pid)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{service.port}", timeout=30) as client:
            asked = kinds()
            order = [kind for kind in asked for _ in range(kind.share)]
            first = await _picture(client, asked[0], 0)
            for k, kind in enumerate(order):  # warm-up, and the start of the process for PNG
                await _picture(client, kind, k)
            memory, child, used = [_mb(process)], 0.0, _processor(process)
            for k in range(pictures):
                kind = order[k % len(order)]
                kind.seconds.append(await _picture(client, kind, k))
                used, before = _processor(process), used
                kind.processor.append(used - before)
                if (k + 1) % max(pictures // SAMPLES, 1) == 0:
                    memory.append(_mb(process))
                    child = max(child, sum(map(_mb, process.children())))
        page = await asyncio.to_thread(_measure_page, f"http://127.0.0.1:{service.port}", page_runs)
        return Result(asked, first, memory, child, pictures, *page)
    finally:
        await service.end(signal.SIGTERM)


def _measure_page(url: str, runs: int) -> tuple[list[float], int]:
    """Times and the size of the first view, in a thread of its own: Playwright's synchronous interface does not work
    beside a running loop."""
    service: Any = SimpleNamespace(url=url)
    with chromium() as browser, opened(browser, service) as one:
        first_view = one.open_and_weigh()
        fill(one.page)
        one.page.evaluate(MEASURE)  # warm-up
        times = [float(one.page.evaluate(MEASURE)) for _ in range(runs)]
        one.errors.clear()  # a 503 of a machine with much other work counts as infinitely late
        return times, first_view


async def _picture(client: httpx.AsyncClient, kind: Kind, k: int) -> float:
    began, headers = time.perf_counter(), {"Accept": kind.accept}
    if kind.path.startswith(CHART):
        response = await client.post(kind.path, json=_patient(k), headers=headers)
    else:
        response = await client.get(kind.path, headers=headers)
    seconds = time.perf_counter() - began
    if response.status_code == 503:  # on a machine with much other work: not drawn within the deadline
        return math.inf
    if response.status_code != 200 or response.headers["content-type"] != kind.accept:
        raise RuntimeError(f"{kind.name}: status {response.status_code}")
    return seconds


def _patient(k: int) -> dict[str, Any]:
    """Another one each time."""
    diameter = 28.0 + (k % 1500) / 100
    visits = [
        {"age_years": 30 + k % 20, "height_cm": 176, "weight_kg": 78, "diameter_mm": diameter - 1.0},
        {"age_years": 52 + k % 7, "height_cm": 176, "weight_kg": 80, "diameter_mm": diameter - 0.4},
    ]
    return {
        "age_years": 20 + k % 60,
        "sex": "male",
        "height_cm": 165 + k % 20,
        "weight_kg": 70 + k % 15,
        "diameter_mm": diameter,
        "visits": visits,
    }


def _processor(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def _mb(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1e6


def report(result: Result, load_average: tuple[float, float], command: str) -> list[str]:
    rows = [
        (kind.name, str(len(kind.seconds)), str(late), *(f"{1e3 * value:.1f}" for value in _times(kind)))
        for kind in result.kinds
        for late in [kind.seconds.count(math.inf)]
    ]
    memory = result.memory_mb
    largest, grown = max(memory), memory[-1] - memory[1]
    page, first_view = median(result.page_ms), result.first_view_bytes / 1e3
    slowest = max(1e3 * median(kind.seconds) for kind in result.kinds if kind.accept == SVG)
    return [
        *opening("The cost of pictures", command, load_average, "Other work was running: times are too long."),
        EXPLANATION,
        "",
        *table(
            ("picture", "pictures", "too late (503)", "processor, ms", "median, ms", "99%, ms", "slowest, ms"), rows
        ),
        f"First picture of the process: {1e3 * result.first_seconds:.0f} ms.",
        "",
        f"Slowest median of an SVG: {slowest:.1f} ms (at most {MAX_SVG_MS:g} ms: {_met(slowest <= MAX_SVG_MS)}).",
        "",
        f"Memory of the serving process after warm-up and after each tenth of {result.pictures} pictures, in MB: "
        + ", ".join(f"{mb:.0f}" for mb in memory)
        + f". Largest {largest:.0f} MB (at most {MAX_MB:g} MB: {_met(largest <= MAX_MB)}); change from the first tenth "
        f"to the last {grown:+.1f} MB (flat, at most {GROWTH_MB:g} MB: {_met(grown <= GROWTH_MB)}). "
        f"The process that renders PNG has another {result.child_mb:.0f} MB.",
        "",
        f"The calculator in headless Chromium on the same machine, from submit to the four pictures of two sites, "
        f"{len(result.page_ms)} times: median {page:.0f} ms, fastest {min(result.page_ms):.0f} ms, slowest "
        f"{max(result.page_ms):.0f} ms (median at most {MAX_PAGE_MS:g} ms: {_met(page <= MAX_PAGE_MS)}).",
        "",
        f"First view of the calculator over the wire, with headers: {first_view:.1f} kB "
        f"(at most {MAX_FIRST_VIEW_KB:g} kB: {_met(first_view <= MAX_FIRST_VIEW_KB)}).",
    ]


def _met(is_met: bool) -> str:
    return "met" if is_met else "NOT MET"


def _times(kind: Kind) -> tuple[float, ...]:
    ordered = sorted(value for value in kind.seconds if value < math.inf)
    mean = sum(kind.processor) / len(kind.processor)
    return mean, median(ordered), ordered[int(0.99 * (len(ordered) - 1))], ordered[-1]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure what pictures cost.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pictures", type=int, default=10_000)
    parser.add_argument("--page-runs", type=int, default=100)
    options = parser.parse_args(arguments)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(measure(options.pictures, options.page_runs, Path(folder)))
    command = command_line("tests.campaigns.charts", arguments or sys.argv[1:], options.out)
    write_report(options.out, report(result, (before, os.getloadavg()[0]), command))


if __name__ == "__main__":
    main()
