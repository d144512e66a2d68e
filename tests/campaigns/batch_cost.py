"""What a measurement of a batch costs, by stage, over HTTP and as a stream, and what single requests notice of it.

    python -m tests.campaigns.batch_cost --out FILE

The service runs in a process of its own with everything on: validation, audit, commits on disk. Its processor time and
memory are those of that process, from the system.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from signal import SIGTERM
from statistics import median, quantiles
from typing import Any

import httpx
import msgspec
import psutil  # type: ignore[import-untyped]

from app.audit.chain import link, new_chain
from app.audit.records import encode
from app.cli.common import caller
from app.database.stored_payload import deflate
from app.domain.card import ModelRef
from app.formats import strict_json
from app.formats.markdown import table
from app.inference.measurement_numbers import compute_numbers
from app.observability import configure_logging
from app.runtime.command import command_runtime
from app.schemas.request_columns import validate_items
from app.services.score_batch import BLOCK_ITEMS, Batch
from app.services.score_block import BlockModels, ScoredBlock, measurements_of, score_block
from app.settings import load_settings
from tests.campaigns.reports import command_line, opening, spread, write_report
from tests.campaigns.service_process import ServiceProcess
from tests.web.serving import READING, STATED

BATCH = "/v1/batch/score"
STAGES = ("parse", "validate", "score", "judge", "audit", "print")
BUSY = "**Other work was running on the machine: processor times are higher than on a quiet one.**"
MAX_CPU_US, MAX_MEGABYTES = 45.0, 100.0
SAMPLE_SECONDS = 0.05
STARTING_SECONDS = 3.0
PIECE = 500  # lines of one piece of a stream
EXPLANATION = """\
Every item has an id, a site, a convention and numbers of its own. Microseconds are processor time of the service for
each measurement, from the socket to the socket, with the audit on SQLite. *With msgspec alone* is parsing the request
and printing the response and nothing else. Stages are measured in one process without HTTP, each on all blocks, the
fastest of some rounds: *score* are the numbers; *judge* verdicts, advisories, rounding and checks; *audit* the columns,
the hash and the deflating of a block, without the commit. Memory is the resident memory of the service above what it
has when idle, after one warming batch; the largest of samples 20 times a second."""


def an_item(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": f"study-{number}",
        "site": rng.choice(["SoV", "AA"]),
        "age_years": round(rng.uniform(20.0, 80.0), 1),
        "sex": rng.choice(["male", "female"]),
        "height_cm": round(rng.gauss(170.0, 9.0), 1),
        "weight_kg": round(rng.uniform(50.0, 100.0), 1),
        "diameter_mm": round(rng.gauss(35.0, 4.0), 1),
        "convention": STATED,
    }


def items(count: int) -> list[dict[str, Any]]:
    rng = random.Random(0)  # noqa: S311 - no secret
    return [an_item(rng, number) for number in range(count)]


@dataclass(frozen=True, slots=True)
class Measured:
    batch_us: Sequence[float]
    stream_us: float
    stream_megabytes: float
    alone_ms: Sequence[float]
    beside_ms: Sequence[float]


class Meter:
    """Processor time and memory of the service."""

    def __init__(self, process_id: int) -> None:
        self._process = psutil.Process(process_id)

    def seconds(self) -> float:
        used = self._process.cpu_times()
        return float(used.user + used.system)

    def megabytes(self) -> float:
        return float(self._process.memory_info().rss) / 1e6

    async def highest(self, ended: asyncio.Event) -> float:
        highest = self.megabytes()
        while not ended.is_set():
            highest = max(highest, self.megabytes())
            await asyncio.sleep(SAMPLE_SECONDS)
        return highest


async def measure(folder: Path, count: int, stream: int, turns: int, singles: int) -> Measured:
    service = ServiceProcess({"NORMALCY_DATA_DIR": str(folder)})
    await service.start()
    meter = Meter(service.process.pid)
    body = msgspec.json.encode({"items": items(count)})
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{service.port}", timeout=120.0) as client:
            await _batch(client, body, count)
            idle, found = meter.megabytes(), []
            for _ in range(turns):
                before = meter.seconds()
                await _batch(client, body, count)
                found.append((meter.seconds() - before) / count * 1e6)
            alone = await _single_ms(client, singles)
            beside = await _beside(client, body, singles)
            before, ended = meter.seconds(), asyncio.Event()
            highest = asyncio.create_task(meter.highest(ended))
            await _stream(client, stream)
            ended.set()
            used = (meter.seconds() - before) / stream * 1e6
            return Measured(found, used, await highest - idle, alone, beside)
    finally:
        await service.end(SIGTERM)


async def _batch(client: httpx.AsyncClient, body: bytes, count: int) -> None:
    answer = await client.post(BATCH, content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["succeeded"] == count


async def _stream(client: httpx.AsyncClient, count: int) -> None:
    """Reads while it sends, and holds neither request nor response."""
    piece = b"".join(msgspec.json.encode(item) + b"\n" for item in items(PIECE))

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(count // PIECE):
            yield piece

    host, port = client.base_url.host, client.base_url.port
    reading, writing = await asyncio.open_connection(host, port)
    head = f"POST {BATCH} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/x-ndjson\r\n"
    writing.write(f"{head}Content-Length: {len(piece) * (count // PIECE)}\r\n\r\n".encode())

    async def send() -> None:
        async for each in pieces():
            writing.write(each)
            await writing.drain()

    sending, tail = asyncio.create_task(send()), b""
    while not tail.endswith(b"0\r\n\r\n"):
        received = await reading.read(1 << 18)
        assert received, "the stream ended early"
        tail = (tail + received)[-4096:]
    await sending
    writing.close()
    assert b'"summary":{"succeeded":%d,"failed":0' % (count // PIECE * PIECE) in tail


async def _single_ms(client: httpx.AsyncClient, count: int) -> list[float]:
    found = []
    for _ in range(count):
        began = time.perf_counter()
        assert (await client.post("/v1/sites/SoV/score", json=READING)).status_code == 200
        found.append(1000.0 * (time.perf_counter() - began))
        await asyncio.sleep(0.01)
    return found


async def _beside(client: httpx.AsyncClient, body: bytes, singles: int) -> list[float]:
    """While another process sends one batch after the other: reading a response takes time, too."""
    sender = get_context("spawn").Process(target=send_batches, args=(str(client.base_url), body), daemon=True)
    sender.start()
    try:
        await asyncio.sleep(STARTING_SECONDS)
        return await _single_ms(client, singles)
    finally:
        sender.kill()
        sender.join()


def send_batches(url: str, body: bytes) -> None:
    with httpx.Client(base_url=url, timeout=120.0) as client:
        while True:
            client.post(BATCH, content=body, headers={"Content-Type": "application/json"})


async def stages(folder: Path, count: int, rounds: int) -> dict[str, float]:
    """Microseconds for each measurement."""
    settings = load_settings({"NORMALCY_DATA_DIR": str(folder)})
    body, found = msgspec.json.encode({"items": items(count)}), {}

    def timed(name: str, work: Callable[[Any], Any], prepare: Callable[[], Any] = lambda: None) -> Any:
        taken = []
        for _ in range(rounds):
            prepared = prepare()
            began = time.thread_time()
            result = work(prepared)
            taken.append(time.thread_time() - began)
        found[name] = min(taken) / count * 1e6
        return result

    async with command_runtime(settings, "score") as runtime:
        await runtime.poller.start()
        batch = Batch(runtime, caller("score"))
        parsed: Any = timed("parse", lambda _: strict_json.loads(body))
        blocks = [parsed["items"][start : start + BLOCK_ITEMS] for start in range(0, count, BLOCK_ITEMS)]
        requests = timed("validate", lambda _: [validate_items(block) for block in blocks])
        models = await BlockModels(runtime).find(requests[0])
        scored = timed("judge", lambda _: _scored(requests, models))
        groups = [
            (group.model, measurements_of(block.requests, group.rows)) for block in scored for group in block.groups
        ]
        timed("score", lambda _: [compute_numbers(model, measured) for model, measured in groups])
        found["judge"] -= found["score"]
        numbered = {model.ref: 0 for model, _ in groups}
        prepare = partial(_scored, requests, models)
        written = timed("print", lambda fresh: [block.items(0, numbered) for block in fresh], prepare)
        timed("audit", lambda fresh: [_record(batch, block) for block in fresh], lambda: _printed(prepare(), numbered))
        response = msgspec.json.decode(b"[" + b",".join(item for block in written for item in block) + b"]")
        timed(
            "parse and print with msgspec alone", lambda _: (msgspec.json.decode(body), msgspec.json.encode(response))
        )
    return {name: found[name] for name in (*STAGES, "parse and print with msgspec alone")}


def _scored(requests: Sequence[Any], models: Any) -> list[ScoredBlock]:
    return [score_block(each, models) for each in requests]


def _printed(blocks: list[ScoredBlock], numbered: dict[ModelRef, int]) -> list[ScoredBlock]:
    for block in blocks:
        block.items(0, numbered)
    return blocks


def _record(batch: Batch, block: ScoredBlock) -> list[bytes]:
    rows, _ = link(new_chain("2026-11"), [encode(record) for record in batch.records(block, 0)])
    return [deflate(row.payload) for row in rows]


def render(
    found: Measured, split: dict[str, float], sizes: Sequence[int], load: tuple[float, float], command: str
) -> list[str]:
    count, stream = sizes
    cost, alone = median(found.batch_us), split["parse and print with msgspec alone"]
    stage_rows = [(name, f"{value:.1f}") for name, value in split.items()]
    own = sum(split[name] for name in STAGES)
    reached = "Reached" if cost <= MAX_CPU_US else "Not reached"
    bounded = "Reached" if found.stream_megabytes <= MAX_MEGABYTES else "Not reached"
    waits = [
        (name, f"{median(times):.1f}", f"{quantiles(times, n=100)[98]:.1f}", f"{max(times):.1f}")
        for name, times in (("alone", found.alone_ms), ("beside batches", found.beside_ms))
    ]
    return [
        *opening("What a measurement of a batch costs", command, load, BUSY),
        EXPLANATION,
        "",
        *table(
            ("", "µs a measurement"),
            [
                (f"batch of {count:,} as JSON, over HTTP", spread(found.batch_us, ".1f")),
                (f"stream of {stream:,} JSON lines, over HTTP", f"{found.stream_us:.1f}"),
            ],
        ),
        f"Aim: at most {MAX_CPU_US:g} µs for the batch. {reached}: {cost:.1f} µs.",
        "",
        *table(("stage", "µs a measurement"), [*stage_rows, ("all stages of the service", f"{own:.1f}")]),
        f"The stages take {own / alone:.1f} times what msgspec alone takes to parse and print the same JSON.",
        "",
        f"Memory above idle during the stream: {found.stream_megabytes:.0f} MB.",
        f"Aim: at most {MAX_MEGABYTES:g} MB. {bounded}.",
        "",
        "Single requests, one after the other, in ms:",
        "",
        *table(("", "median", "99%", "slowest"), waits),
    ]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.batch_cost", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--items", type=int, default=10_000, help="of the batch")
    parser.add_argument("--stream", type=int, default=1_000_000, help="items of the stream, a multiple of 500")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--singles", type=int, default=300, help="single requests, alone and beside batches")
    given = parser.parse_args(arguments)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        split = asyncio.run(stages(Path(name) / "stages", given.items, given.turns))
        found = asyncio.run(measure(Path(name) / "data", given.items, given.stream, given.turns, given.singles))
    command = command_line("tests.campaigns.batch_cost", arguments, given.out)
    load = (before, os.getloadavg()[0])
    write_report(given.out, render(found, split, (given.items, given.stream), load, command))


if __name__ == "__main__":
    configure_logging("error", sys.stderr)
    main(sys.argv[1:])
