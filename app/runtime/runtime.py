"""What a process holds while it serves, opened in order and closed in reverse."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

import app
from app.audit.author import chains_to_adopt, open_author
from app.audit.encryption import DataKeys, open_data_keys, owner_of
from app.audit.recorded_request import SubjectHasher, subject_hasher
from app.audit.refusals import RefusalRecorder
from app.audit.signing_key import trusted_keys
from app.audit.writer import AuditWriter
from app.build_info import UNKNOWN, source_commit
from app.clock import utc_now
from app.database.engine import Database, open_database
from app.database.migrate import upgrade
from app.database.schema_checks import check_database
from app.database.sqlite import serve_lock
from app.inference.answer_columns import ScoredAnswer
from app.inference.microbatch import MicroBatcher
from app.inference.scoring import score_with_tails
from app.observability import Metrics, make_metrics
from app.runtime.authentication import Authenticator
from app.runtime.checkpoints import Checkpoints
from app.runtime.credentials import Keyring, KeyUses, check_exposure, check_login
from app.runtime.idempotent_answers import IdempotentAnswers
from app.runtime.issuer_keys import IssuerKeys
from app.runtime.issuers import read_issuers
from app.runtime.models import Backend, LoadedModels, check_models_dir, choose_backend
from app.runtime.poller import DatabasePoller
from app.runtime.rate_limits import InFlight, LockOuts, RateLimiter
from app.runtime.tokens import TokenVerifier
from app.runtime.workers import BatchThread, DrawingThread, Rasteriser
from app.schemas.answers import ServiceInfo
from app.settings import Settings

VerificationOutcome = Literal["pending", "off", "intact", "tampered", "not_permitted", "failed"]


@dataclass(slots=True)
class VerificationState:
    """What the scheduled verification of the audit found last, for readiness and the metrics."""

    outcome: VerificationOutcome = "pending"  # of the last run
    last_intact: float = 0.0  # Unix time; 0: not since the start


@dataclass(slots=True)
class Runtime:
    settings: Settings
    database: Database
    loaded_models: LoadedModels
    keyring: Keyring
    tokens: TokenVerifier
    poller: DatabasePoller
    writer: AuditWriter
    checkpoints: Checkpoints
    data_keys: DataKeys
    metrics: Metrics
    service_info: ServiceInfo
    login_warnings: tuple[dict[str, str], ...] = ()  # about the database login, found at the start
    clock: Callable[[], datetime] = utc_now
    verification: VerificationState = field(default_factory=VerificationState)
    is_draining: bool = False  # set when the process is asked to stop: not ready any more, still answering
    answers: IdempotentAnswers = field(init=False)
    uses: KeyUses = field(init=False)
    authenticator: Authenticator = field(init=False)
    limiter: RateLimiter = field(init=False)
    in_flight: InFlight = field(default_factory=InFlight)
    lock_outs: LockOuts = field(default_factory=LockOuts)
    batcher: MicroBatcher[ScoredAnswer] = field(init=False)
    batches: BatchThread = field(init=False)
    drawing: DrawingThread = field(init=False)
    rasteriser: Rasteriser = field(init=False)
    refusals: RefusalRecorder = field(init=False)
    hasher: SubjectHasher = field(init=False)

    def __post_init__(self) -> None:
        self.hasher = subject_hasher(self.settings)
        self.answers = IdempotentAnswers(self.database, self.data_keys, self.hasher, lambda: self.clock())
        self.uses = KeyUses(self.database, lambda: self.clock())
        self.authenticator = Authenticator(self.keyring, self.uses, self.tokens, self.metrics)
        self.limiter = RateLimiter(self.settings.rate_per_second, self.settings.rate_burst)
        self.batcher = MicroBatcher(score_with_tails)
        self.batches = BatchThread()
        self.drawing, self.rasteriser = DrawingThread(), Rasteriser()
        self.refusals = RefusalRecorder(self.writer, self.metrics)


@asynccontextmanager
async def open_runtime(settings: Settings) -> AsyncIterator[Runtime]:
    """Raises a NormalcyError if this process must not serve."""
    async with AsyncExitStack() as stack:
        check_models_dir(settings.models_dir)
        issuers = read_issuers(settings.jwt_issuers_file)
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
        data_keys = await open_data_keys(settings, database, create=True)
        if data_keys.encrypts:
            await data_keys.get([owner_of(None, utc_now())])  # of several processes with different keys, one starts
        poller = DatabasePoller(polled, loaded_models, keyring, data_keys)
        await poller.start()
        tokens = TokenVerifier(IssuerKeys(issuer) for issuer in issuers)
        check_exposure(settings.host, keyring.has_seen_keys or bool(issuers))
        await _read_issuer_keys(tokens, metrics)
        facts = process_facts(settings) | {
            "service": asdict(info),
            "models": [asdict(model.ref) for model in loaded_models.loaded],
        }
        author = await open_author(settings, database, facts)
        writer = AuditWriter(database.appender(), author, metrics, budget_seconds=settings.audit_budget_seconds)
        checkpoints = Checkpoints(database, settings.data_dir, utc_now, metrics, trusted_keys(settings))
        stack.push_async_callback(checkpoints.take)  # the last one, after the chain was sealed
        stack.push_async_callback(writer.stop)
        await writer.start(await chains_to_adopt(database, author.log))
        for task in (poller.run(), checkpoints.run(), *(keys.run() for keys in tokens.issuers)):
            stack.push_async_callback(_cancel, asyncio.create_task(task))
        runtime = Runtime(
            settings,
            database,
            loaded_models,
            keyring,
            tokens,
            poller,
            writer,
            checkpoints,
            data_keys,
            metrics,
            info,
            login_warnings,
        )
        stack.push_async_callback(runtime.uses.save)
        for task in (runtime.answers.run(), runtime.uses.run()):
            stack.push_async_callback(_cancel, asyncio.create_task(task))
        stack.callback(runtime.refusals.close)
        stack.callback(runtime.batches.close)
        stack.callback(runtime.drawing.close)
        stack.push_async_callback(runtime.rasteriser.close)
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


async def _read_issuer_keys(tokens: TokenVerifier, metrics: Metrics) -> None:
    await asyncio.gather(*(keys.start() for keys in tokens.issuers))
    for keys in tokens.issuers:
        metrics.issuer_keys_age_seconds.labels(keys.issuer.issuer).set_function(lambda keys=keys: keys.age_seconds)  # type: ignore[misc]


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
