"""The clock of the machine jumps under load: by a second, a day, into the next month and back."""

import asyncio
import os
import random
import time
from dataclasses import replace

from tests.campaigns.faults.compare import Json, Tally
from tests.campaigns.faults.cycles import NO_EFFECT, as_finding, recorded, verify
from tests.campaigns.faults.instrumented import program
from tests.campaigns.faults.load import Load
from tests.campaigns.faults.row import Context, Finding
from tests.campaigns.faults.target import started
from tests.campaigns.service_process import Verdict

DAY = 86_400
JUMPS = (1, -1, DAY, -DAY, 31 * DAY, -31 * DAY)  # seconds, from where the clock is then
BETWEEN_SECONDS = (0.1, 0.5)


async def run_clock_jumps(context: Context) -> Finding:
    """A cycle is every jump once, in an order drawn from the seed."""
    tally, rng, label = Tally(), context.rng(), f"{context.seed}"
    file, dates = context.folder / "clock", set[str]()
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
            records = await recorded(target.owner_settings, one)
            tally.add(load.outcomes, records)
            dates |= {date_of(record) for found in records.values() for record in found}
        verdict = await verify(target)
    return judge(tally, verdict, dates)


def date_of(record: Json) -> str:
    """On which its service computed it, as YYYY-MM-DD."""
    return str(record["at"])[:10]


def judge(tally: Tally, verdict: Verdict, dates: set[str]) -> Finding:
    """`dates` of the records: without a jump one, or two around midnight; the jumps of a cycle make at least three."""
    finding = as_finding(tally, verdict)
    figures = {"dates of the records": len(dates), **finding.figures}
    return replace(finding, figures=figures, unmet=[*finding.unmet, *([] if len(dates) > 2 else [NO_EFFECT])])


def _offsets(rng: random.Random) -> list[int]:
    """The clock after each jump; the sum of all is 0."""
    jumps, offsets = rng.sample(JUMPS, len(JUMPS)), [0]
    for jump in jumps:
        offsets.append(offsets[-1] + jump)
    return offsets[1:]
