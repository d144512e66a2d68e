"""Honest clients beside 1,000 slow sockets, and beside callers with ten times the connections that saturate a service.

The service throttles these callers: what is measured is what that costs the honest clients.
"""

import asyncio
import json
import math
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
SERVED_SHARE, MEMORY_MB = 0.95, 50.0
COUNTS = ("answers", "seconds", "errors", "opened", "closed")  # of an attack, to be added up; of the others the largest


@dataclass(frozen=True)
class Bounds:
    """Of the times of honest requests beside the attack."""

    slower: float = math.inf  # their p99, as a multiple of that without the attack
    slowest: float = math.inf  # seconds


OF_ONE_CALLER = Bounds(slower=3.0)  # who may have little of what the service can serve
OF_MANY_CALLERS = Bounds(slowest=3.0)  # who together may have much of it


@dataclass(frozen=True)
class Cycle:
    alone: Mapping[str, float]  # what the honest clients measured
    beside: Mapping[str, float]  # the same during the attack
    attack: Mapping[str, float]  # what the attackers did
    peak_mb: float  # resident memory of the service during the attack

    @property
    def share(self) -> float:
        return self.beside["served"] / self.beside["sent"]

    @property
    def slower(self) -> float:
        return self.beside["p99"] / self.alone["p99"]

    @property
    def attacked(self) -> bool:
        """Something of the attack reached the service."""
        return self.attack.get("answers", 0) + self.attack.get("opened", 0) > 0


async def run_slow_sockets(context: Context) -> Finding:
    return await _run(context, "faults.slow_client", SOCKETS)


async def run_overload(
    context: Context, scope: Scope = Scope.SCORE, path: str = PATH, keys: int = 1, bounds: Bounds = OF_ONE_CALLER
) -> Finding:
    """By keys with this scope, which a score needs or not."""
    return await _run(context, "load_client", OVERLOAD_CONNECTIONS, path, scope=scope, keys=keys, bounds=bounds)


async def _run(
    context: Context,
    attack: str,
    connections: int,
    *more: object,
    scope: Scope = Scope.SCORE,
    keys: int = 0,
    bounds: Bounds = OF_ONE_CALLER,
) -> Finding:
    """Each cycle measures the honest clients alone, then beside the attack, which has so many keys."""
    cycles, before_mb = list[Cycle](), 0.0
    async with with_key(pinned(context), {}) as (target, key):
        others = [await asyncio.to_thread(create_key, target.owner_settings, [scope]) for _ in range(keys)]
        await asyncio.sleep(LOADED_SECONDS)
        for _ in context.each_cycle():
            alone = await result(await _honest(target, key, QUIET_SECONDS))
            before_mb = before_mb or _resident_mb(target)  # of the first cycle, or memory could grow in each
            seconds = ATTACK_SECONDS + 2 * HEAD_START_SECONDS
            given = (target.service.port, connections, seconds, *([",".join(others), *more] if others else []))
            attackers = await start(attack, *given, niceness=ATTACKERS_NICENESS)
            await asyncio.sleep(HEAD_START_SECONDS)
            honest, peak_mb = await _honest(target, key, ATTACK_SECONDS), 0.0
            waiting = asyncio.create_task(result(honest))
            while not waiting.done():
                await asyncio.wait([waiting], timeout=0.2)
                peak_mb = max(peak_mb, _resident_mb(target))
            cycles.append(Cycle(alone, await waiting, await result(attackers), peak_mb))
    return judge(cycles, before_mb, bounds)


def judge(cycles: Sequence[Cycle], before_mb: float, bounds: Bounds) -> Finding:
    """The worst cycle counts. `before_mb`: resident memory before the first attack."""
    if not cycles:
        return Finding(0, {}, ["no cycle was run"])
    worst = max(cycles, key=lambda cycle: cycle.slower)
    share, slowest = min(cycle.share for cycle in cycles), max(cycle.beside["slowest"] for cycle in cycles)
    memory_mb = max(cycle.peak_mb for cycle in cycles) - before_mb
    figures: dict[str, Figure] = {
        "honest requests": sum(int(cycle.beside["sent"]) for cycle in cycles),
        "least served": f"{100 * share:.1f}%",
        "p99 alone": f"{1000 * worst.alone['p99']:.0f} ms",
        "p99 beside": f"{1000 * worst.beside['p99']:.0f} ms",
        "slower by": f"{worst.slower:.1f}",
        "slowest beside": f"{1000 * slowest:.0f} ms",
        "memory": f"{memory_mb:+.0f} MB",
        **_attack_figures(cycles),
    }
    within = (
        (f"served {100 * share:.1f}%", share >= SERVED_SHARE),
        (f"p99 slower by {worst.slower:.1f}", worst.slower <= bounds.slower),
        (f"slowest answer {slowest:.2f} s", slowest <= bounds.slowest),
        (f"memory {memory_mb:+.0f} MB", memory_mb <= MEMORY_MB),
    )
    idle = sum(not cycle.attacked for cycle in cycles)
    unmet = [f"no attack in {idle} of {len(cycles)} cycles"] if idle else []
    unmet += ["no slow socket was closed"] if any(cycle.attack.get("closed", 1) == 0 for cycle in cycles) else []
    return Finding(len(cycles), figures, unmet, [name for name, is_met in within if not is_met])


def _attack_figures(cycles: Sequence[Cycle]) -> dict[str, Figure]:
    """Of all cycles together."""
    names = cycles[0].attack
    did = {name: (sum if name in COUNTS else max)(cycle.attack[name] for cycle in cycles) for name in names}
    if "answers" in did:
        did |= {"answers a second": did["answers"] / did.pop("seconds")}
    return {f"attack: {name}": f"{value:,.0f}" for name, value in did.items()}


def pinned(context: Context) -> Context:
    """The service with all its threads on a processor of its own, which only PostgreSQL, not pinned, uses too."""
    return replace(context, program=(*pin(SERVER_CPU), *context.program))


def _resident_mb(target: Target) -> float:
    resident: int = psutil.Process(target.service.process.pid).memory_info().rss
    return resident / 2**20


async def _honest(target: Target, key: str, seconds: float) -> Process:
    return await start("faults.paced_client", target.service.port, HONEST_CLIENTS, seconds, INTERVAL_SECONDS, key)


async def start(module: str, *arguments: object, niceness: int = 0) -> Process:
    """A process of its own, on the clients' processor."""
    command = (*pin(CLIENT_CPU), sys.executable, "-m", f"tests.campaigns.{module}", *map(str, arguments))
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, preexec_fn=lambda: os.nice(niceness))


async def result(process: Process) -> dict[str, float]:
    """What it measured. Raises if it failed: an attack that ends early is none."""
    output, _ = await process.communicate()
    if process.returncode or not output:
        raise RuntimeError(f"a client ended with {process.returncode} and {len(output)} bytes of output")
    found: dict[str, float] = json.loads(output)
    return found
