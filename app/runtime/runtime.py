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
from app.clock import utc_now
from app.database.engine import Database, open_database
from app.database.lock import serving_alone
from app.database.migrate import upgrade
from app.database.readiness import check_database
from app.formats.answer import ServiceInfo, service_provenance
from app.inference.microbatch import MicroBatcher
from app.inference.scoring import Scored, score_with_tails
from app.observability import Metrics, make_metrics
from app.runtime.checkpoints import Checkpoints
from app.runtime.credentials import Keyring, refuse_exposure
from app.runtime.load_model import Backend, choose_backend
from app.runtime.loaded_models import LoadedModels
from app.runtime.login import check_login
from app.runtime.poller import DatabasePoller
from app.runtime.service_info import service_info
from app.settings import Settings


@dataclass(slots=True)
class Runtime:
    settings: Settings
    database: Database
    loaded_models: LoadedModels
    batcher: MicroBatcher[Scored]
    keyring: Keyring
    poller: DatabasePoller
    writer: AuditWriter
    checkpoints: Checkpoints
    refusals: RefusalRecorder
    hasher: SubjectHasher
    stamp: ServiceInfo
    provenance: dict[str, Any]  # the stamp, as answers tell it
    metrics: Metrics
    clock: Callable[[], datetime] = utc_now
    login_warnings: tuple[dict[str, str], ...] = ()  # of the start
    is_draining: bool = False  # set when the process was told to stop: not ready, still answering


@asynccontextmanager
async def open_runtime(settings: Settings) -> AsyncIterator[Runtime]:
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
        loaded_models, keyring = LoadedModels(settings.models_dir, backend), Keyring()
        watched = open_database(settings)  # a pool of its own: look-ups must not delay the news of a revoked key
        closing.push_async_callback(watched.close)
        poller = DatabasePoller(watched, loaded_models, keyring)
        await poller.begin()
        refuse_exposure(settings.host, keyring)
        metrics = make_metrics()
        metrics.key_expiry_seconds.set_function(lambda: keyring.next_expiry_seconds(utc_now()))
        facts = _facts(settings, service_info(settings, backend), loaded_models)
        writer = AuditWriter(database.appender(), facts, metrics, budget_seconds=settings.audit_budget_seconds)
        checkpoints = Checkpoints(database, settings.data_dir, utc_now, metrics)
        closing.push_async_callback(checkpoints.take)  # the last one, behind the seal
        closing.push_async_callback(writer.stop)
        await writer.start()
        for work in (poller.run(), checkpoints.run()):
            closing.push_async_callback(_stop, asyncio.create_task(work))
        parts = Parts(database, loaded_models, keyring, poller, writer, checkpoints, metrics, login_warnings)
        runtime = assemble(settings, backend, parts)
        closing.callback(runtime.refusals.close)
        yield runtime


class Parts(NamedTuple):
    """What is opened in order; the rest of a service is made from settings alone."""

    database: Database
    loaded_models: LoadedModels
    keyring: Keyring
    poller: DatabasePoller
    writer: AuditWriter
    checkpoints: Checkpoints
    metrics: Metrics
    login_warnings: tuple[dict[str, str], ...] = ()


def assemble(settings: Settings, backend: Backend, parts: Parts) -> Runtime:
    stamp = service_info(settings, backend)
    return Runtime(
        settings=settings,
        batcher=MicroBatcher(score_with_tails),
        refusals=RefusalRecorder(parts.writer, parts.metrics),
        hasher=subject_hasher(settings),
        stamp=stamp,
        provenance=service_provenance(stamp),
        **parts._asdict(),
    )


def _facts(settings: Settings, stamp: ServiceInfo, loaded_models: LoadedModels) -> dict[str, Any]:
    """Who writes the chains of this process."""
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "service": asdict(stamp),
        "models": [asdict(model.ref) for model in loaded_models.loaded],
        "settings_sha256": settings.fingerprint(),
    }


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
