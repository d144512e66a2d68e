"""The faults. Each is injected under load and returns the moment from which the service has to answer again."""

import asyncio
import os
import random
import resource
import signal
import time
from collections.abc import Awaitable, Callable

import asyncpg  # type: ignore[import-untyped]
import psutil  # type: ignore[import-untyped]

from tests.campaigns.faults.network_proxy import Network
from tests.campaigns.faults.target import Target
from tests.postgres import PrivateServer

DOWN_SECONDS = 1.0  # the longest time that a database stays down
FROZEN_SECONDS = 3.5  # longer than every timeout of the service
FULL_SECONDS = 1.0
SLOW_SECONDS = 4.0
RESET_SECONDS = 1.0
FILE_LIMIT_BYTES = 64 * 1024  # the write-ahead log of SQLite soon outgrows it
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'normalcy'"


Injection = Callable[[Target, random.Random], Awaitable[float]]


async def kill_9(target: Target, rng: random.Random) -> float:
    await target.service.end(signal.SIGKILL)
    restarted = time.monotonic()
    await target.service.start()
    return restarted


async def terminate(target: Target, rng: random.Random) -> float:
    """SIGTERM, as in a rolling update."""
    code = await target.service.end(signal.SIGTERM)
    if code:
        raise RuntimeError(f"after SIGTERM the service ended with {code}")
    restarted = time.monotonic()
    await target.service.start()
    return restarted


async def database_crashes(target: Target, rng: random.Random) -> float:
    await asyncio.to_thread(target.postgres.stop, "immediate")
    await asyncio.sleep(rng.uniform(0.0, DOWN_SECONDS))
    restarted = time.monotonic()
    await asyncio.to_thread(target.postgres.start)
    return restarted


async def backends_freeze(target: Target, rng: random.Random) -> float:
    """The connections of the service hang; new ones can be made."""
    return await _frozen(await _backends(target))


async def connections_of(target: Target) -> int:
    """How many connections to PostgreSQL the service has."""
    return len(await _backends(target)) if target.server is not None else 0


async def _backends(target: Target) -> list[int]:
    observer = await asyncpg.connect(target.owner_settings.database_url)
    pids = [row["pid"] for row in await observer.fetch(BACKENDS)]
    await observer.close()
    return pids


async def database_freezes(target: Target, rng: random.Random) -> float:
    """All its processes stop: connections hang, and new ones are accepted by the kernel and never served."""
    return await _frozen(postgres_processes(target.postgres))


def postgres_processes(server: PrivateServer) -> list[int]:
    postmaster = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    return [postmaster, *(child.pid for child in psutil.Process(postmaster).children(recursive=True))]


async def disk_fills(target: Target, rng: random.Random) -> float:
    """No file of the service may grow beyond a limit that the database has long passed. Needs no root."""
    pid = target.service.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_LIMIT_BYTES, before[1]))
    await asyncio.sleep(FULL_SECONDS)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    return time.monotonic()


async def network_slow(target: Target, rng: random.Random) -> float:
    """Two seconds for every round trip: as much as a record may take in all."""
    return await _through(target, Network.SLOW, SLOW_SECONDS)


async def network_black_hole(target: Target, rng: random.Random) -> float:
    return await _through(target, Network.BLACK_HOLE, FROZEN_SECONDS)


async def network_reset(target: Target, rng: random.Random) -> float:
    return await _through(target, Network.RESETTING, rng.uniform(0.0, RESET_SECONDS))


async def _through(target: Target, network: Network, seconds: float) -> float:
    target.network.network = network
    await asyncio.sleep(seconds)
    target.network.network = Network.GOOD
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
