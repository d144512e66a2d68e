"""Rows of one kind: load, a fault at a random instant, the return, and every answer compared with the audit."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from statistics import median

import msgspec

from app.clock import timestamp, utc_now
from app.database.engine import open_database
from app.database.records import Filter, stream_records
from app.settings import Settings
from tests.campaigns.faults.compare import Json, Tally
from tests.campaigns.faults.injection import Injection
from tests.campaigns.faults.load import CLIENTS, TIMEOUT_SECONDS, Load
from tests.campaigns.faults.row import Context, Figure, Finding
from tests.campaigns.faults.target import Target, started
from tests.campaigns.service_process import Verdict

WARM_SECONDS = (0.1, 1.0)  # from the first score under load to the fault, drawn again for each cycle
REFUSAL_SECONDS = 2.5  # every refusal within
ANSWER_SECONDS = 3.0  # every answer within
RETURN_SECONDS = 5.0  # back within, once the fault is over
NO_EFFECT = "the fault had no effect"
NO_CHAINS = "verify saw no chain"
REQUIRED = (
    "0 acknowledged scores missing, duplicated or different in the audit, at least one chain and 0 broken ones, only "
    f"200 and 503; every refusal within {REFUSAL_SECONDS} s, every answer within {ANSWER_SECONDS:.0f} s, scores again "
    f"within {RETURN_SECONDS:.0f} s of the restart or of the end of the fault"
)


async def run_cycles(
    context: Context,
    inject: Injection,
    *,
    drops_connections: bool = False,
    must_refuse: bool = False,
    behind_proxy: bool = False,
    more: Mapping[str, str] | None = None,
) -> Finding:
    """`drops_connections`: the process itself dies, so requests in flight get no answer. `must_refuse`: the fault keeps
    the service from its database, so without a refusal it did not happen."""
    rng, tally = context.rng(), Tally()
    async with started(context, more, behind_proxy=behind_proxy) as target:
        for number in context.each_cycle():
            began, label = timestamp(utc_now()), f"{context.seed}-{number}"
            async with Load(target.service, label) as load:
                await load.served_after(0.0)
                await asyncio.sleep(rng.uniform(*WARM_SECONDS))
                over = await inject(target, rng)
                with suppress(TimeoutError):  # then it is one return too few
                    tally.returns.append(await load.served_after(over))
            tally.add(load.outcomes, await recorded(target.owner_settings, label, began))
            if len(tally.returns) < tally.cycles:
                break  # it does not serve: another fault would show nothing
        verdict = await verify(target)
    return as_finding(tally, verdict, drops_connections=drops_connections, must_refuse=must_refuse)


async def verify(target: Target) -> Verdict:
    """By the command, past a proxy that may be broken."""
    url = target.owner_settings.database_url
    return await target.service.verify({"NORMALCY_DATABASE_URL": url} if url else {})


def as_finding(
    tally: Tally, verdict: Verdict, *, drops_connections: bool = False, must_refuse: bool = False
) -> Finding:
    figures: dict[str, Figure] = {
        "acknowledged": tally.acknowledged,
        "missing": tally.missing,
        "duplicated": tally.duplicated,
        "different": tally.different,
        "chains": verdict.chains,
        "broken": verdict.broken,
        "refused (503)": tally.refused,
        "other status": tally.unexpected,
        "unanswered": tally.unanswered,
        "recorded without an answer": tally.unacknowledged,
        "slowest refusal": f"{tally.slowest_refusal:.2f} s" if tally.refused else "–",
        "slowest answer": f"{tally.slowest_answer:.2f} s",
        "median return": f"{median(tally.returns or [0.0]):.2f} s",
        "slowest return": f"{tally.slowest_return:.2f} s",
    }
    failures = unmet(tally, verdict, drops_connections=drops_connections, must_refuse=must_refuse)
    return Finding(tally.cycles, figures, failures, late(tally))


def unmet(tally: Tally, verdict: Verdict, *, drops_connections: bool = False, must_refuse: bool = False) -> list[str]:
    """The requirements that did not hold, each with its figure."""
    in_flight = CLIENTS * tally.cycles if drops_connections else 0  # at most, whenever a process died
    counts = {
        "missing": tally.missing,
        "duplicated": tally.duplicated,
        "different": tally.different,
        "other status": tally.unexpected,
        "broken chains": verdict.broken,
        "exit of verify": verdict.code,
        "unanswered": tally.unanswered if tally.unanswered > in_flight else 0,
        f"nothing in {TIMEOUT_SECONDS:.0f} s": tally.hung,
        "no score after the fault": tally.cycles - len(tally.returns),
    }
    lost = [f"{name} {count:,}" for name, count in counts.items() if count]
    lost += [] if verdict.chains else [NO_CHAINS]
    lost += [] if tally.acknowledged else ["nothing acknowledged"]
    return lost + ([NO_EFFECT] if must_refuse and not tally.refused else [])


def verdict_unmet(verdict: Verdict) -> list[str]:
    """Of rows that require nothing else of the audit."""
    return ([f"exit of verify {verdict.code}"] if verdict.code else []) + ([] if verdict.chains else [NO_CHAINS])


def late(tally: Tally) -> list[str]:
    times = (
        ("slowest refusal", tally.slowest_refusal, REFUSAL_SECONDS),
        ("slowest answer", tally.slowest_answer, ANSWER_SECONDS),
        ("slowest return", tally.slowest_return, RETURN_SECONDS),
    )
    return [f"{name} {seconds:.2f} s" for name, seconds, bound in times if seconds > bound]


async def recorded(settings: Settings, label: str, began: str | None = None) -> dict[str, list[Json]]:
    """The scores on record, by request id, of the requests whose ids begin with the label."""
    found: dict[str, list[Json]] = defaultdict(list)
    database = open_database(settings, statement_seconds=None)
    try:
        async with database.reading() as connection:
            async for page in stream_records(connection, Filter(start=began) if began else Filter()):
                for row, _ in page:
                    if row.kind == "score" and str(row.request_id).startswith(label + "-"):
                        found[str(row.request_id)].append(msgspec.json.decode(row.payload))
    finally:
        await database.close()
    return found
