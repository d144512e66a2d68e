"""The fuzzer of tests/fuzz as rows: hostile requests alone, and with markers to look for while the database fails."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from app.domain.scopes import Scope
from tests.campaigns.faults import injection
from tests.campaigns.faults.cycles import NO_EFFECT, verdict_unmet, verify
from tests.campaigns.faults.row import Context, Figure, Finding
from tests.campaigns.faults.target import Target, started
from tests.fuzz.canaries import DIGITS, NAME
from tests.fuzz.judge import logged_canaries
from tests.fuzz.raw_bytes import Judged, fuzz
from tests.web.serving import bearer, create_key

SETTINGS = {"NORMALCY_LOG_LEVEL": "debug", "NORMALCY_RATE_PER_SECOND": "0"}  # the limit would answer nearly all
PART = 1000  # requests between two looks at the clock
PAUSE_SECONDS = 2.0  # between two faults


@asynccontextmanager
async def with_key(context: Context, settings: Mapping[str, str] = SETTINGS) -> AsyncIterator[tuple[Target, str]]:
    """The service, and a key with every scope that it has loaded."""
    async with started(context, settings) as target:
        key = await asyncio.to_thread(create_key, target.owner_settings, tuple(Scope))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{target.service.port}") as client:
            while (await client.get("/v1/sites")).status_code != 401:
                await asyncio.sleep(0.1)
        yield target, key


async def run_fuzz(context: Context) -> Finding:
    judged = Judged()
    async with with_key(context) as (target, key):
        await _send(context, target, key, judged)
        await target.service.end(signal.SIGINT)
        log = logged_canaries(await target.service.log())
        verdict = await verify(target)
    shown = ("server error", "no answer", "echo", "not a problem", "another's answer", "no request id")
    figures: dict[str, Figure] = {
        **{f"{first}xx": _statuses(judged, first) for first in (2, 4, 5)},
        "refused for want of time, then tried again": judged.retried,
        **{name: judged.faults[name] for name in shown},
        "logged": len(log),
    }
    unmet = [f"{name} {count:,}" for name, count in judged.faults.items()]
    unmet += [f"logged {len(log)}"] if log else []
    unmet += verdict_unmet(verdict)
    late = [f"503 and tried again {judged.retried}"] if judged.retried else []
    return Finding(judged.asked, figures, unmet, late)


async def run_canaries(context: Context) -> Finding:
    """Answers may be refusals or missing here; nothing may repeat what was sent."""
    judged, rng, faults = Judged(), context.rng(), 0
    inject = injection.disk_fills if context.database == "SQLite" else injection.database_crashes
    async with with_key(context) as (target, key):
        sending = asyncio.create_task(_send(context, target, key, judged))
        while not sending.done():
            await asyncio.wait([sending], timeout=PAUSE_SECONDS)
            if not sending.done():
                await inject(target, rng)
                faults += 1
        await sending
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{target.service.port}") as client:
            metrics = (await client.get("/metrics", headers=bearer(key))).raise_for_status().text
        await target.service.end(signal.SIGINT)
        places = {"the log": await target.service.log(), "metrics": metrics}
        if target.server is not None:
            places["PostgreSQL's log"] = Path(target.server.folder / "log").read_text(errors="replace")
    found = {f"in {name}": len(logged_canaries(text)) for name, text in places.items()}
    found = {"in answers": judged.faults["echo"], **found}
    figures: dict[str, Figure] = {
        "faults": faults,
        "refused, then tried again": judged.retried,
        "markers": f"{NAME}…, {DIGITS}…",
        **found,
    }
    unmet = [f"{name} {count:,}" for name, count in found.items() if count]
    return Finding(judged.asked, figures, unmet if judged.retried else [*unmet, NO_EFFECT])


async def _send(context: Context, target: Target, key: str, judged: Judged) -> None:
    assert target.service.port is not None
    for first in range(0, context.cycles, PART):
        if asyncio.get_running_loop().time() > context.ends_at:  # also monotonic
            break
        numbers = range(first, min(first + PART, context.cycles))
        judged.add(await fuzz(target.service.port, key, context.seed, numbers))


def _statuses(judged: Judged, first: int) -> int:
    return sum(count for status, count in judged.statuses.items() if status // 100 == first)
