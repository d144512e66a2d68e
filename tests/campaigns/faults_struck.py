"""The faults. Each strikes while clients ask, and tells from which moment on the service has to be back."""

import asyncio
import os
import random
import resource
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import asyncpg  # type: ignore[import-untyped]
import psutil  # type: ignore[import-untyped]

from tests.campaigns.faults_service import ServiceProcess
from tests.postgres import PostgresServer, PrivateServer

AWAY_SECONDS = 1.0  # at most so long a database stays away
FROZEN_SECONDS = 3.5  # longer than every bound of the service
FULL_SECONDS = 1.0
ROOM_BYTES = 64 * 1024  # the side file of the embedded database soon outgrows it
OURS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'normalcy'"


@dataclass(frozen=True)
class Stage:
    service: ServiceProcess
    server: PostgresServer | None = None  # None: SQLite

    @property
    def postgres(self) -> PrivateServer:
        if not isinstance(self.server, PrivateServer):
            raise ValueError("this fault needs a PostgreSQL of its own")
        return self.server


FieldError = Callable[[Stage, random.Random], Awaitable[float]]


async def kill_9(stage: Stage, rng: random.Random) -> float:
    await stage.service.end(signal.SIGKILL)
    restarted = time.monotonic()
    await stage.service.start()
    return restarted


async def told_to_stop(stage: Stage, rng: random.Random) -> float:
    """As a rolling update does."""
    code = await stage.service.end(signal.SIGTERM)
    if code:
        raise RuntimeError(f"told to stop, the service ended with {code}")
    restarted = time.monotonic()
    await stage.service.start()
    return restarted


async def database_crashes(stage: Stage, rng: random.Random) -> float:
    await asyncio.to_thread(stage.postgres.stop, "immediate")
    await asyncio.sleep(rng.uniform(0.0, AWAY_SECONDS))
    restarted = time.monotonic()
    await asyncio.to_thread(stage.postgres.start)
    return restarted


async def backends_freeze(stage: Stage, rng: random.Random) -> float:
    """The connections of the service hang; new ones can be made."""
    observer = await asyncpg.connect(stage.service.settings["NORMALCY_DATABASE_URL"])
    pids = [row["pid"] for row in await observer.fetch(OURS)]
    await observer.close()
    return await _frozen(pids)


async def database_freezes(stage: Stage, rng: random.Random) -> float:
    """Nothing of the server moves: connections hang, and new ones are taken in by the kernel and never served."""
    postmaster = int((stage.postgres.folder / "data" / "postmaster.pid").read_text().split()[0])
    children = psutil.Process(postmaster).children(recursive=True)
    return await _frozen([postmaster, *(child.pid for child in children)])


async def disk_fills(stage: Stage, rng: random.Random) -> float:
    """No file of the service may grow beyond a bound that the database has long passed. No root needed."""
    pid = stage.service.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (ROOM_BYTES, before[1]))
    await asyncio.sleep(FULL_SECONDS)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    return time.monotonic()


async def _frozen(pids: list[int]) -> float:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(FROZEN_SECONDS)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    return time.monotonic()
