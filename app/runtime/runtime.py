"""What a process holds while it serves, opened in order and closed in reverse."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import app
from app.audit.refusals import RefusalRecorder
from app.audit.subject import SubjectHasher, subject_hasher
from app.audit.writer import AuditWriter
from app.build_info import UNKNOWN, source_commit
from app.clock import utc_now
from app.database.engine import Database, open_database
from app.database.migrate import upgrade
from app.database.schema_checks import check_database
from app.database.sqlite import serve_lock
from app.inference.microbatch import MicroBatcher
from app.inference.scoring import Scored, score_with_tails
from app.observability import Metrics, make_metrics
from app.runtime.checkpoints import Checkpoints
from app.runtime.credentials import Keyring, check_exposure, check_login
from app.runtime.models import Backend, LoadedModels, choose_backend
from app.runtime.poller import DatabasePoller
from app.schemas.answers import ServiceInfo
from app.settings import Settings


@dataclass(slots=True)
class Runtime:
    settings: Settings
    database: Database
    loaded_models: LoadedModels
    keyring: Keyring
    poller: DatabasePoller
    writer: AuditWriter
    checkpoints: Checkpoints
    metrics: Metrics
    service_info: ServiceInfo
    login_warnings: tuple[dict[str, str], ...] = ()  # about the database login, found at the start
    clock: Callable[[], datetime] = utc_now
    is_draining: bool = False  # set when the process is asked to stop: not ready any more, still answering
    batcher: MicroBatcher[Scored] = field(init=False)
    refusals: RefusalRecorder = field(init=False)
    hasher: SubjectHasher = field(init=False)

    def __post_init__(self) -> None:
        self.batcher = MicroBatcher(score_with_tails)
        self.refusals = RefusalRecorder(self.writer, self.metrics)
        self.hasher = subject_hasher(self.settings)


@asynccontextmanager
async def open_runtime(settings: Settings) -> AsyncIterator[Runtime]:
    """Raises a NormalcyError if this process must not serve."""
    async with AsyncExitStack() as stack:
        backend = await asyncio.to_thread(choose_backend, settings)
        info = service_info(settings, backend)
        database = open_database(settings)
        stack.push_async_callback(database.close)
        if database.dialect == "sqlite":
            stack.enter_context(serve_lock(database.file))
            await upgrade(database.without_timeouts())
        await check_database(database)
        login_warnings = await check_login(database, settings)
        loaded_models, keyring, metrics = LoadedModels(settings.models_dir, backend), Keyring(), make_metrics()
        metrics.key_expiry_seconds.set_function(lambda: keyring.next_expiry_seconds(utc_now()))
        polled = open_database(settings)  # its own pool: audit queries must not delay the news of a revoked key
        stack.push_async_callback(polled.close)
        poller = DatabasePoller(polled, loaded_models, keyring)
        await poller.start()
        check_exposure(settings.host, keyring)
        facts = process_facts(settings) | {
            "service": asdict(info),
            "models": [asdict(model.ref) for model in loaded_models.loaded],
        }
        writer = AuditWriter(database.appender(), facts, metrics, budget_seconds=settings.audit_budget_seconds)
        checkpoints = Checkpoints(database, settings.data_dir, utc_now, metrics)
        stack.push_async_callback(checkpoints.take)  # the last one, after the chain was sealed
        stack.push_async_callback(writer.stop)
        await writer.start()
        for task in (poller.run(), checkpoints.run()):
            stack.push_async_callback(_cancel, asyncio.create_task(task))
        runtime = Runtime(
            settings,
            database,
            loaded_models,
            keyring,
            poller,
            writer,
            checkpoints,
            metrics,
            info,
            login_warnings,
        )
        stack.callback(runtime.refusals.close)
        yield runtime


def service_info(settings: Settings, backend: Backend) -> ServiceInfo:
    """Which program this is. NORMALCY_COMMIT wins over the commit of the source tree."""
    commit = settings.commit if settings.commit != UNKNOWN else source_commit()
    return ServiceInfo(app.__version__, commit, backend.name, backend.device)


def process_facts(settings: Settings) -> dict[str, Any]:
    """Which process writes a chain, for the first record of the chain."""
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "settings_sha256": settings.fingerprint(),
    }


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
