"""Run one fault, cycle after cycle, on a database of its own."""

import asyncio
import os
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from app.clock import timestamp, utc_now
from app.database.engine import open_database
from app.database.migrate import upgrade
from app.database.records import Filter, stream_records
from app.settings import Settings, load_settings
from tests.campaigns.fault_injection import Injection, Target
from tests.campaigns.faults_compare import Json, Tally
from tests.campaigns.faults_load import Load
from tests.campaigns.service_process import NORMALCY, ServiceProcess, Verdict
from tests.postgres import PostgresServer

WARM_SECONDS = (0.1, 1.0)  # from the first score under load to the fault, drawn again for each cycle


Database = Literal["SQLite", "PostgreSQL"]


@dataclass(frozen=True)
class Part:
    name: str
    database: Database
    cycles: int
    inject: Injection
    drops_connections: bool = False  # the process itself dies, so requests in flight get no answer
    program: tuple[str, ...] = NORMALCY


@dataclass(frozen=True)
class Result:
    part: Part
    tally: Tally
    verdict: Verdict
    load: float = 0.0  # average of the machine over the last minute, when it ended


async def run_part(part: Part, seed: int, server: PostgresServer) -> Result:
    rng, tally = random.Random(f"{seed} {part.name} {part.database}"), Tally()  # noqa: S311 - no secret
    async with started(part, server) as target:
        for number in range(part.cycles):
            await run_cycle(part, target, rng, f"{os.getpid()}-{number}", tally)
            sys.stderr.write(f"\r{part.name}, {part.database}: {number + 1} of {part.cycles}  ")
        sys.stderr.write("\n")
        return Result(part, tally, await target.service.verify(), os.getloadavg()[0])


async def run_cycle(part: Part, target: Target, rng: random.Random, label: str, tally: Tally) -> None:
    began = timestamp(utc_now())
    async with Load(target.service, label) as load:
        await load.served_after(0.0)
        await asyncio.sleep(rng.uniform(*WARM_SECONDS))
        over = await part.inject(target, rng)
        tally.returns.append(await load.served_after(over))
    records = await recorded(load_settings(target.service.settings), began, label)
    tally.add(load.outcomes, records)


async def recorded(settings: Settings, began: str, label: str) -> dict[str, list[Json]]:
    """The scores on record since `began`, by request id."""
    found: dict[str, list[Json]] = defaultdict(list)
    database = open_database(settings, statement_seconds=None)
    try:
        async with database.reading() as connection:
            async for page in stream_records(connection, Filter(start=began)):
                for row, _ in page:
                    if row.kind == "score" and str(row.request_id).startswith(label + "-"):
                        found[str(row.request_id)].append(msgspec.json.decode(row.payload))
    finally:
        await database.close()
    return found


@asynccontextmanager
async def started(part: Part, server: PostgresServer) -> AsyncIterator[Target]:
    """The service, started, on an empty database."""
    with tempfile.TemporaryDirectory(prefix="normalcy-faults-") as folder:
        settings = {"NORMALCY_DATA_DIR": str(Path(folder) / "var"), "NORMALCY_LOG_LEVEL": "error"}
        if part.database == "SQLite":
            async with _serving(ServiceProcess(settings, part.program)) as service:
                yield Target(service)
            return
        with server.new_database() as name:
            await _migrate(load_settings({"NORMALCY_DATABASE_URL": server.url(name)}))
            settings["NORMALCY_DATABASE_URL"] = server.service_url(name)
            async with _serving(ServiceProcess(settings, part.program)) as service:
                yield Target(service, server)


@asynccontextmanager
async def _serving(service: ServiceProcess) -> AsyncIterator[ServiceProcess]:
    await service.start()
    try:
        yield service
    finally:
        if service.process.returncode is None:
            service.process.kill()
            await service.process.wait()


async def _migrate(settings: Settings) -> None:
    database = open_database(settings, statement_seconds=None)
    try:
        await upgrade(database)
    finally:
        await database.close()
