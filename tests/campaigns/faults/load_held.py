"""Load with the audit, without it, and with one commit for each record, in the same rounds."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from statistics import median

from tests.campaigns.faults.row import Context, Figure, Finding
from tests.campaigns.servers import COMMAND, Load, Running, migrated, run_load, service

CONNECTIONS = 64  # as many as saturate the service
SECONDS, WARM_UP_SECONDS = 2.5, 0.5
OF_UNAUDITED, OF_ONE_INSERT, ADDED_P99_MS = 0.7, 1.5, 25.0
COMPARED = ("-m", "tests.campaigns.comparison_servers")
ARGUMENTS = {
    "audit off": (*COMPARED, "unaudited"),
    "one insert": (*COMPARED, "one-insert"),
    "audit": (*COMMAND, "serve"),
}


async def run_load_held(context: Context) -> Finding:
    """A cycle is a round: every server once, each time in another order."""
    return await asyncio.to_thread(_run, context)


def _run(context: Context) -> Finding:
    rounds = list[dict[str, Load]]()
    with _servers(context) as servers:
        for server in servers.values():
            run_load(server, CONNECTIONS, WARM_UP_SECONDS)
        names = list(servers)
        for number in context.each_cycle():
            first = number % len(names)
            rounds.append(
                {name: run_load(servers[name], CONNECTIONS, SECONDS) for name in names[first:] + names[:first]}
            )
    return judge(rounds)


@contextmanager
def _servers(context: Context) -> Iterator[Mapping[str, Running]]:
    """All at once, each with a database of its own; those without load are idle."""
    with ExitStack() as stack:
        servers = {}
        for name, arguments in ARGUMENTS.items():
            on_postgres = context.database == "PostgreSQL"
            url = stack.enter_context(migrated(context.postgres) if on_postgres else nullcontext(""))
            servers[name] = stack.enter_context(service(context.folder / name, url, arguments))
        yield servers


def judge(rounds: Sequence[Mapping[str, Load]]) -> Finding:
    """By the medians over the rounds; every round is shown."""
    off = [one["audit"].rate / one["audit off"].rate for one in rounds]
    single = [one["audit"].rate / one["one insert"].rate for one in rounds]
    added = [one["audit"].p99_ms - one["audit off"].p99_ms for one in rounds]
    figures: dict[str, Figure] = {
        **{f"{name}, scores/s": ", ".join(f"{one[name].rate:,.0f}" for one in rounds) for name in ARGUMENTS},
        "of audit off": ", ".join(f"{value:.0%}" for value in off),
        "of one insert": ", ".join(f"{value:.0%}" for value in single),
        "added p99, ms": ", ".join(f"{value:.1f}" for value in added),
    }
    bounds = (
        (f"{median(off):.0%} of audit off", median(off) >= OF_UNAUDITED),
        (f"{median(single):.0%} of one insert", median(single) >= OF_ONE_INSERT),
        (f"added p99 {median(added):.1f} ms", median(added) <= ADDED_P99_MS),
    )
    return Finding(len(rounds), figures, late=[name for name, is_met in bounds if not is_met])
