"""SIGTERM under load. Two replicas on PostgreSQL behind a balancer that honours readiness; one process on SQLite."""

import asyncio
import signal
import time
from functools import partial

from tests.campaigns.faults.balancer import Balancer
from tests.campaigns.faults.compare import Tally
from tests.campaigns.faults.cycles import as_finding, recorded, run_cycles, verify
from tests.campaigns.faults.injection import terminate
from tests.campaigns.faults.load import Load
from tests.campaigns.faults.row import Context, Finding
from tests.campaigns.faults.target import running, second_replica, started

BEFORE_SECONDS = (0.1, 1.0)
POLL_SECONDS = 0.05
READY_SECONDS = 30.0


async def run_behind_balancer(context: Context) -> Finding:
    """Each cycle restarts one replica, in turn, while the other one serves. Refusals count as failed requests."""
    tally, rng, label = Tally(), context.rng(), f"{context.seed}"
    async with started(context) as target:
        second = second_replica(target, context.program)
        async with running(second):
            replicas = (target.service, second)
            async with Balancer(replicas) as balancer:
                for number in context.each_cycle():
                    replica, one = replicas[number % 2], f"{label}-{number}"
                    async with Load(balancer, one) as load:
                        await load.served_after(0.0)
                        await asyncio.sleep(rng.uniform(*BEFORE_SECONDS))
                        if code := await replica.end(signal.SIGTERM):
                            raise RuntimeError(f"after SIGTERM the service ended with {code}")
                        restarted = time.monotonic()
                        await replica.start()
                        await _until_ready(balancer, len(replicas))
                        tally.returns.append(time.monotonic() - restarted)
                    tally.add(load.outcomes, await recorded(target.owner_settings, one))
        verdict = await verify(target)
    finding = as_finding(tally, verdict)
    failed = tally.refused + tally.unexpected + tally.unanswered
    figures = {"failed": failed, **finding.figures}
    return Finding(
        tally.cycles, figures, [*finding.unmet, *([f"failed requests {failed:,}"] if failed else [])], finding.late
    )


run_alone = partial(run_cycles, inject=terminate)


async def _until_ready(balancer: Balancer, replicas: int) -> None:
    async with asyncio.timeout(READY_SECONDS):
        while len(balancer.ready) < replicas:
            await asyncio.sleep(POLL_SECONDS)
