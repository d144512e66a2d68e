"""Random changes of a signed audit, and clean audits that are verified while they are written."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from datetime import datetime, timedelta
from itertools import cycle

from app.audit.author import FOLDER, signed_files
from app.clock import utc_now
from app.database.engine import Database, open_database
from app.database.migrate import upgrade
from app.settings import Settings, load_settings
from tests.audit.both_verifiers import Auditor, crash, fill, open_writer
from tests.audit.recording import score
from tests.audit.tampering import TAMPERS, Stored, Tamper, Tampered, apply, can_store, only_adds, read_stored
from tests.campaigns.faults.row import Context, Figure, Finding

PER_AUDIT = 4 * len(TAMPERS)  # tampers of one audit, so that every kind comes as often in it
CLEAN_PER_AUDIT = 25
WRITERS = 8
FOUND, REFUSED = "found", "refused by the database"
FAILED = "missed, changed by the service, or the verifiers differ"
FASTER = 60.0  # the clock of clean runs, so that a checkpoint is due every second


async def run_tampering(context: Context, *, as_owner: bool) -> Finding:
    """A cycle is a tamper that the database can store, in turn of every kind."""
    seen, kinds, failures, turn = Counter[str](), set[str](), list[str](), cycle(TAMPERS)
    async with AsyncExitStack() as stack:
        for number in context.each_cycle():
            if number % PER_AUDIT == 0:
                await stack.aclose()
                pick = random.Random(f"{context.rng().random()} {number}")  # noqa: S311 - repeatable
                settings, database = await stack.enter_async_context(new_audit(context, number))
                await fill(settings, database, pick)
                auditor = Auditor.of(settings, database, settings.data_dir.parent / f"auditor-{number}")
                base = await read_stored(database)
            name, tampered = _next(turn, auditor.database, base, pick)
            outcome = await _try(auditor, base, tampered, as_owner=as_owner)
            if outcome not in (FOUND, REFUSED):
                failures.append(f"{name}, cycle {number}: {outcome}")
                outcome = FAILED
            seen[outcome] += 1
            kinds.add(name)
    figures: dict[str, Figure] = {
        "kinds": len(kinds),
        **{outcome: seen[outcome] for outcome in (FOUND, REFUSED, FAILED)},
    }
    return Finding(seen.total(), figures, failures)


def _next(turn: Iterator[Tamper], database: Database, base: Stored, pick: random.Random) -> tuple[str, Tampered]:
    """The first whose values the database has at all: PostgreSQL knows no other spelling of a UUID, for example."""
    while True:
        tamper = next(turn)
        tampered = tamper(base, pick)
        if can_store(database, tampered[0]):
            return tamper.__name__, tampered


async def _try(auditor: Auditor, base: Stored, tamper: Tampered, *, as_owner: bool) -> str:
    """The database refuses it, or both verifiers find it and agree; what went wrong otherwise."""
    tampered, expected = tamper
    if not await apply(auditor.database, base, tampered, as_owner=as_owner):
        return REFUSED
    failure = await _unnoticed(auditor, expected)
    await apply(auditor.database, tampered, base, as_owner=True)
    if not (as_owner or only_adds(base, tampered)):
        return "the database let the service change rows that it stored"
    return failure or FOUND


async def _unnoticed(auditor: Auditor, expected: set[str]) -> str:
    verified = await auditor.verify()
    if not verified.kinds & expected:
        return f"expected {sorted(expected)}, found {sorted(verified.kinds)}"
    return "" if verified.by_service == verified.by_tool else f"the verifiers differ: {verified}"


async def run_clean(context: Context) -> Finding:
    """A cycle is a verification, while writers come, write, seal, crash and go."""
    rng, alarms, cycles = context.rng(), list[str](), 0
    for first in context.each_cycle(CLEAN_PER_AUDIT):
        async with new_audit(context, first) as (settings, database), writers(settings, database, rng):
            for _ in range(min(CLEAN_PER_AUDIT, context.cycles - first)):
                folder = settings.data_dir.parent / f"auditor-{first}"
                found = await Auditor.of(settings, database, folder).verify()  # copies the checkpoints, then reads
                cycles += 1
                if found.by_service or found.by_tool:
                    alarms.append(f"a false alarm, cycle {cycles - 1}: {found}")
    return Finding(cycles, {"writers": WRITERS, "false alarms": len(alarms)}, alarms)


@asynccontextmanager
async def new_audit(context: Context, number: int) -> AsyncIterator[tuple[Settings, Database]]:
    """An empty one."""
    given = {"NORMALCY_DATA_DIR": str(context.folder / f"data-{number}")}
    with context.postgres.new_database() if context.database == "PostgreSQL" else nullcontext() as name:
        settings = load_settings(given | ({"NORMALCY_DATABASE_URL": context.postgres.url(name)} if name else {}))
        database = open_database(settings, statement_seconds=None)
        try:
            await upgrade(database)
            yield settings, database
        finally:
            await database.close()


class FastClock:
    def __init__(self) -> None:
        self._start, self._began = utc_now(), time.monotonic()

    def __call__(self) -> datetime:
        return self._start + timedelta(seconds=(time.monotonic() - self._began) * FASTER)


@asynccontextmanager
async def writers(settings: Settings, database: Database, rng: random.Random) -> AsyncIterator[None]:
    clock, stop = FastClock(), asyncio.Event()
    writing = [asyncio.create_task(_write(settings, database, clock, rng, stop)) for _ in range(WRITERS)]
    try:
        while not any(file.stat().st_size for file in signed_files(settings.data_dir / FOLDER)):
            await asyncio.sleep(0.1)  # an auditor without a checkpoint could not check anything
        yield
    finally:
        stop.set()
        await asyncio.gather(*writing)


async def _write(
    settings: Settings, database: Database, clock: FastClock, rng: random.Random, stop: asyncio.Event
) -> None:
    while not stop.is_set():
        writer = await open_writer(settings, database, clock)
        for number in range(rng.randrange(30)):
            await writer.write([score(f"request-{number}", at=clock())])
            await asyncio.sleep(rng.random() * 0.1)
        await (writer.stop() if rng.random() < 0.7 else crash(writer))
