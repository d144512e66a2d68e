"""The service while it runs: everything that answers share, opened in order and closed in reverse."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from app.audit.refusals import RefusalRecorder
from app.audit.subject import SubjectHasher, subject_hasher
from app.audit.writer import AuditWriter
from app.database.engine import Database, open_database
from app.database.lock import serving_alone
from app.database.migrate import upgrade
from app.database.readiness import check_database
from app.database.times import utc_now
from app.formats.answer import ServiceStamp, service_provenance
from app.inference.desk import Desk
from app.observability import Metrics, make_metrics
from app.services.build import service_stamp
from app.services.checkpoints import Checkpoints
from app.services.credentials import Keyring, refuse_exposure
from app.services.login import check_login
from app.services.prepare import Backend, choose_backend
from app.services.score import Scored, score_with_tails
from app.services.shelf import Shelf
from app.services.watch import Watcher
from app.settings import Settings


@dataclass(slots=True)
class RunningService:
    settings: Settings
    database: Database
    shelf: Shelf
    desk: Desk[Scored]
    keyring: Keyring
    watcher: Watcher
    writer: AuditWriter
    checkpoints: Checkpoints
    refusals: RefusalRecorder
    hasher: SubjectHasher
    stamp: ServiceStamp
    provenance: dict[str, Any]  # the stamp, as answers tell it
    metrics: Metrics
    clock: Callable[[], datetime] = utc_now
    login_warnings: tuple[dict[str, str], ...] = ()  # of the start
    is_draining: bool = False  # set when the process was told to stop: not ready, still answering


@asynccontextmanager
async def open_service(settings: Settings) -> AsyncIterator[RunningService]:
    """Raises a NormalcyError, in one sentence, for whatever must not serve."""
    async with AsyncExitStack() as closing:
        backend = await asyncio.to_thread(choose_backend, settings)
        database = open_database(settings)
        closing.push_async_callback(database.close)
        if database.dialect == "sqlite":
            closing.enter_context(serving_alone(database.file))
            await upgrade(database.unbounded())
        await check_database(database)
        login_warnings = await check_login(database, settings)
        shelf, keyring = Shelf(settings.models_dir, backend), Keyring()
        watched = open_database(settings)  # a pool of its own: look-ups must not delay the news of a revoked key
        closing.push_async_callback(watched.close)
        watcher = Watcher(watched, shelf, keyring)
        await watcher.begin()
        refuse_exposure(settings.host, keyring)
        metrics = make_metrics()
        metrics.key_expiry_seconds.set_function(lambda: keyring.next_expiry_seconds(utc_now()))
        facts = _facts(settings, service_stamp(settings, backend), shelf)
        writer = AuditWriter(database.appender(), facts, metrics, budget_seconds=settings.audit_budget_seconds)
        checkpoints = Checkpoints(database, settings.data_dir, utc_now, metrics)
        closing.push_async_callback(checkpoints.take)  # the last one, behind the seal
        closing.push_async_callback(writer.stop)
        await writer.start()
        for work in (watcher.run(), checkpoints.run()):
            closing.push_async_callback(_stop, asyncio.create_task(work))
        parts = Parts(database, shelf, keyring, watcher, writer, checkpoints, metrics, login_warnings)
        service = assemble(settings, backend, parts)
        closing.callback(service.refusals.close)
        yield service


class Parts(NamedTuple):
    """What is opened in order; the rest of a service is made from settings alone."""

    database: Database
    shelf: Shelf
    keyring: Keyring
    watcher: Watcher
    writer: AuditWriter
    checkpoints: Checkpoints
    metrics: Metrics
    login_warnings: tuple[dict[str, str], ...] = ()


def assemble(settings: Settings, backend: Backend, parts: Parts) -> RunningService:
    stamp = service_stamp(settings, backend)
    return RunningService(
        settings=settings,
        desk=Desk(score_with_tails),
        refusals=RefusalRecorder(parts.writer, parts.metrics),
        hasher=subject_hasher(settings),
        stamp=stamp,
        provenance=service_provenance(stamp),
        **parts._asdict(),
    )


def _facts(settings: Settings, stamp: ServiceStamp, shelf: Shelf) -> dict[str, Any]:
    """Who writes the chains of this process."""
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "service": asdict(stamp),
        "models": [asdict(model.ref) for model in shelf.loaded],
        "settings_sha256": settings.fingerprint(),
    }


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
