"""The clock of the machine jumps under load: by a second, a day, into the next month and back."""

import asyncio
import os
import random
import time
from dataclasses import replace

from tests.campaigns.faults.compare import Tally
from tests.campaigns.faults.cycles import as_finding, recorded, verify
from tests.campaigns.faults.instrumented import program
from tests.campaigns.faults.load import Load
from tests.campaigns.faults.row import Context, Finding
from tests.campaigns.faults.target import started

DAY = 86_400
JUMPS = (1, -1, DAY, -DAY, 31 * DAY, -31 * DAY)  # seconds, from where the clock is then
BETWEEN_SECONDS = (0.1, 0.5)


async def run_clock_jumps(context: Context) -> Finding:
    """A cycle is every jump once, in an order drawn from the seed."""
    tally, rng, label = Tally(), context.rng(), f"{os.getpid()}"
    file = context.folder / "clock"
    file.write_text("0")
    os.environ["CLOCK_FILE"] = str(file)
    async with started(replace(context, program=program("clock", context.program))) as target:
        for number in context.each_cycle():
            one = f"{label}-{number}"
            async with Load(target.service, one) as load:
                await load.served_after(0.0)
                for offset in _offsets(rng):
                    file.write_text(str(offset))
                    jumped = time.monotonic()
                    await asyncio.sleep(rng.uniform(*BETWEEN_SECONDS))
                tally.returns.append(await load.served_after(jumped))
            tally.add(load.outcomes, await recorded(target.owner_settings, one))
        verdict = await verify(target)
    return as_finding(tally, verdict)


def _offsets(rng: random.Random) -> list[int]:
    """The clock after each jump; the sum of all is 0."""
    jumps, offsets = rng.sample(JUMPS, len(JUMPS)), [0]
    for jump in jumps:
        offsets.append(offsets[-1] + jump)
    return offsets[1:]
