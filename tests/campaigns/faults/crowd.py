"""Honest clients beside 1,000 slow sockets, and beside a caller that sends ten times what the service can serve."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process

import psutil  # type: ignore[import-untyped]

from app.domain.scopes import Scope
from tests.campaigns.faults.hostile_bytes import with_key
from tests.campaigns.faults.row import Context, Figure, Finding
from tests.campaigns.faults.target import Target
from tests.campaigns.messages import PATH
from tests.campaigns.servers import CLIENT_CPU, SERVER_CPU, pin
from tests.web.serving import create_key

HONEST_CLIENTS, INTERVAL_SECONDS = 16, 0.4  # below the rate limit of one key
QUIET_SECONDS, ATTACK_SECONDS = 8.0, 16.0  # longer than the deadline for headers
SOCKETS = 1000
OVERLOAD_CONNECTIONS = 640  # ten times as many as saturate the service
LOADED_SECONDS = 2.0  # until the service has read a new key
HEAD_START_SECONDS = 3.0  # for the attack to be complete
ATTACKERS_NICENESS = 10  # they are elsewhere: that they share a processor with the honest clients must not be measured
SERVED_SHARE, SLOWER, MEMORY_MB = 0.95, 3.0, 50.0


async def run_slow_sockets(context: Context) -> Finding:
    return await _run(context, "faults.slow_client", SOCKETS)


async def run_overload(context: Context, scope: Scope = Scope.SCORE, path: str = PATH, keys: int = 1) -> Finding:
    """By keys with this scope, which a score needs or not."""
    return await _run(context, "load_client", OVERLOAD_CONNECTIONS, path, scope=scope, keys=keys)


async def _run(
    context: Context, attack: str, connections: int, *more: object, scope: Scope = Scope.SCORE, keys: int = 0
) -> Finding:
    """Each cycle measures the honest clients alone, then beside the attack, which has so many keys."""
    worst: dict[str, float] = {"share": 1.0, "slower": 0.0, "quiet": 0.0, "beside": 0.0, "memory": 0.0}
    sent, did, cycles = 0, dict[str, float](), 0
    async with with_key(context, {}) as (target, key):
        others = [await asyncio.to_thread(create_key, target.owner_settings, [scope]) for _ in range(keys)]
        await asyncio.sleep(LOADED_SECONDS)
        process = psutil.Process(target.service.process.pid)
        if pin(SERVER_CPU):
            process.cpu_affinity([SERVER_CPU])
        for _ in context.each_cycle():
            quiet = await _result(await _honest(target, key, QUIET_SECONDS))
            before = process.memory_info().rss
            attackers = await _start(
                attack,
                target.service.port,
                connections,
                ATTACK_SECONDS + 2 * HEAD_START_SECONDS,
                *([",".join(others), *more] if others else []),
                niceness=ATTACKERS_NICENESS,
            )
            await asyncio.sleep(HEAD_START_SECONDS)
            honest, peak = await _honest(target, key, ATTACK_SECONDS), 0
            waiting = asyncio.create_task(_result(honest))
            while not waiting.done():
                await asyncio.wait([waiting], timeout=0.2)
                peak = max(peak, process.memory_info().rss)
            beside, did = await waiting, await _result(attackers)
            sent, cycles = sent + int(beside["sent"]), cycles + 1
            slower = beside["p99"] / quiet["p99"]
            if slower >= worst["slower"]:
                worst |= {"slower": slower, "quiet": quiet["p99"], "beside": beside["p99"]}
            worst["share"] = min(worst["share"], beside["served"] / beside["sent"])
            worst["memory"] = max(worst["memory"], (peak - before) / 2**20)
    figures: dict[str, Figure] = {
        "honest requests": sent,
        "least served": f"{100 * worst['share']:.1f}%",
        "p99 alone": f"{1000 * worst['quiet']:.0f} ms",
        "p99 beside": f"{1000 * worst['beside']:.0f} ms",
        "slower by": f"{worst['slower']:.1f}",
        "memory": f"{worst['memory']:+.0f} MB",
        **{f"attack: {name}": f"{value:,.0f}" for name, value in did.items()},
    }
    bounds = (
        (f"served {100 * worst['share']:.1f}%", worst["share"] >= SERVED_SHARE),
        (f"p99 slower by {worst['slower']:.1f}", worst["slower"] <= SLOWER),
        (f"memory {worst['memory']:+.0f} MB", worst["memory"] <= MEMORY_MB),
    )
    unmet = ["no slow socket was closed"] if did.get("closed", 1) == 0 else []
    return Finding(cycles, figures, unmet, [name for name, is_met in bounds if not is_met])


async def _honest(target: Target, key: str, seconds: float) -> Process:
    return await _start("faults.paced_client", target.service.port, HONEST_CLIENTS, seconds, INTERVAL_SECONDS, key)


async def _start(module: str, *arguments: object, niceness: int = 0) -> Process:
    """A process of its own on the clients' processor; the service has the other one to itself."""
    command = (*pin(CLIENT_CPU), sys.executable, "-m", f"tests.campaigns.{module}", *map(str, arguments))
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, preexec_fn=lambda: os.nice(niceness))


async def _result(process: Process) -> dict[str, float]:
    output, _ = await process.communicate()
    found: dict[str, float] = json.loads(output) if output else {}
    return found
