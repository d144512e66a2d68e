"""Clients that leave at every stage of a request. What was computed for them is on record, and nothing stays open."""

import asyncio
import os
import random
import socket
import struct
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace

import psutil  # type: ignore[import-untyped]

from tests.campaigns.faults.cycles import recorded, verdict_unmet, verify
from tests.campaigns.faults.injection import connections_of
from tests.campaigns.faults.instrumented import program
from tests.campaigns.faults.load import Load
from tests.campaigns.faults.row import Context, Figure, Finding
from tests.campaigns.faults.target import Target, started
from tests.campaigns.messages import random_measurement, score_request

TOGETHER = 100  # clients at once
BACK_SECONDS = 5.0
LEFT_OPEN_SECONDS = 60.0  # what is still open then stays open
POLL_SECONDS = 0.1
MOMENT_SECONDS = 0.02  # about as long as an answer takes
TIMEOUT_SECONDS = 30.0
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection
STAGES = (
    "connected",
    "half the headers",
    "the headers",
    "half the body",
    "the request",
    "the request, a moment later",
    "a byte of the answer",
    "the answer",
)


@dataclass(frozen=True, slots=True)
class Open:
    """What the service has open."""

    files: int  # connections of clients are among them
    connections: int  # to PostgreSQL

    def is_within(self, other: "Open") -> bool:
        return self.files <= other.files and self.connections <= other.connections


async def run_leaving(context: Context) -> Finding:
    """A cycle is a client that leaves, in turn at every stage, with or without a reset."""
    rng, label, stages = context.rng(), f"{context.seed}", Counter[str]()
    computed_file = context.folder / "computed"
    computed_file.touch()
    os.environ["COMPUTED_FILE"] = str(computed_file)
    async with started(replace(context, program=program("computed", context.program))) as target:
        async with Load(
            target.service, f"warm-{label}"
        ) as load:  # as many connections to the database as it ever needs
            await load.served_after(0.0)
        await asyncio.sleep(POLL_SECONDS)
        before, leaving = await open_now(target), set[asyncio.Task[None]]()
        for number in context.each_cycle():
            stage = STAGES[number % len(STAGES)]
            stages[stage] += 1
            leaving.add(asyncio.create_task(leave(target.service.port or 0, f"{label}-{number}", stage, rng)))
            if len(leaving) >= TOGETHER:
                done, leaving = await asyncio.wait(leaving, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.gather(*done)
        await asyncio.gather(*leaving)
        back, after = await until_back(target, before)
        async with Load(target.service, f"then-{label}") as load:
            await load.served_after(0.0)
        computed = computed_file.read_text().split()
        records = await recorded(target.owner_settings, label)
        verdict = await verify(target)
    ours = [name for name in computed if name.startswith(f"{label}-")]
    missing = sum(name not in records for name in ours)
    figures: dict[str, Figure] = {
        "computed": len(ours),
        "computed and not recorded": missing,
        "recorded more than once": sum(len(found) > 1 for found in records.values()),
        "open files": f"{before.files} to {after.files}",
        "connections to PostgreSQL": f"{before.connections} to {after.connections}",
        "back after": f"{back:.2f} s",
    }
    unmet = [
        f"{name} {figures[name]}" for name in ("computed and not recorded", "recorded more than once") if figures[name]
    ]
    unmet += verdict_unmet(verdict)
    unmet += [] if ours else ["nothing computed"]
    unmet += [] if after.is_within(before) else [f"left open: {after}"]
    return Finding(sum(stages.values()), figures, unmet, [f"back after {back:.2f} s"] if back > BACK_SECONDS else [])


async def leave(port: int, request_id: str, stage: str, rng: random.Random) -> None:
    request = score_request(port, random_measurement(rng), X_Request_ID=request_id)
    head = request.index(b"\r\n\r\n") + 4
    sent = {
        "connected": 0,
        "half the headers": head // 2,
        "the headers": head,
        "half the body": (head + len(request)) // 2,
    }.get(stage, len(request))
    is_reset, moment = rng.random() < 0.5, rng.uniform(0, MOMENT_SECONDS)
    with suppress(OSError, EOFError):
        async with asyncio.timeout(TIMEOUT_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request[:sent])
            await writer.drain()
            if stage == "the request, a moment later":
                await asyncio.sleep(moment)
            elif stage == "a byte of the answer":
                await reader.readexactly(1)
            elif stage == "the answer":
                await reader.readuntil(b"\r\n\r\n")
            if is_reset:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.close()


async def open_now(target: Target) -> Open:
    return Open(psutil.Process(target.service.process.pid).num_fds(), await connections_of(target))


async def until_back(target: Target, before: Open) -> tuple[float, Open]:
    """Seconds until nothing more is open than before, and what is open then."""
    began = time.monotonic()
    while True:
        now, seconds = await open_now(target), time.monotonic() - began
        if now.is_within(before) or seconds > LEFT_OPEN_SECONDS:
            return seconds, now
        await asyncio.sleep(POLL_SECONDS)
