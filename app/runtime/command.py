"""A command's visit to the database, beside whatever serves from it: checked first, on record where it reads or scores.

What a visit records stands in a short chain of its own, sealed when it ends. On an embedded database a visit neither
needs nor disturbs the lock of the serving process.
"""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy.exc import ProgrammingError

import app
from app.audit.writer import AuditWriter
from app.clock import utc_now
from app.database.engine import Database, open_database
from app.database.migrate import pending_migrations, upgrade
from app.database.readiness import check_database
from app.database.sqlite import FILE_NAME
from app.errors import DatabaseNotReady, PendingMigrations
from app.observability import make_metrics
from app.runtime.checkpoints import Checkpoints
from app.runtime.credentials import Keyring
from app.runtime.load_model import choose_backend
from app.runtime.loaded_models import LoadedModels
from app.runtime.poller import DatabasePoller
from app.runtime.runtime import Parts, Runtime, assemble
from app.settings import Settings


@asynccontextmanager
async def inspecting(settings: Settings) -> AsyncIterator[Database]:
    """To look, even where the guards of the tables are gone. Creates nothing: an empty audit would look intact."""
    refuse_missing(settings)
    async with _opened(settings) as database:
        missing = await pending_migrations(database)
        if missing:
            raise PendingMigrations(missing)
        yield database


def refuse_missing(settings: Settings, or_else: str = "") -> None:
    """For commands to which an empty database would be the wrong one."""
    file = settings.data_dir / FILE_NAME
    if not settings.database_url and not file.exists():
        asked = f"is NORMALCY_DATA_DIR the right folder?{or_else}"
        raise DatabaseNotReady(f"There is no database at {file.resolve()}: {asked}")


@asynccontextmanager
async def visiting(settings: Settings) -> AsyncIterator[Database]:
    """To work. An embedded database is made and migrated by whoever comes first, as `serve` does."""
    async with _opened(settings) as database:
        if database.dialect == "sqlite" and await pending_migrations(database):
            await upgrade(database)
        await check_database(database)
        yield database


def command_facts(settings: Settings, command: str) -> dict[str, Any]:
    """Who writes the chain of a command."""
    return {
        "command": command,
        "host": socket.gethostname(),
        "process": os.getpid(),
        "version": app.__version__,
        "settings_sha256": settings.fingerprint(),
    }


@asynccontextmanager
async def recording(settings: Settings, database: Database, command: str) -> AsyncIterator[AuditWriter]:
    """Raises AuditUnavailable where nothing can be recorded, before anything is shown."""
    facts, budget = command_facts(settings, command), settings.audit_budget_seconds
    writer = AuditWriter(database.appender(), facts, make_metrics(), budget_seconds=budget)
    try:
        await writer.start()
        yield writer
    finally:
        await writer.stop()


@asynccontextmanager
async def command_runtime(settings: Settings, command: str) -> AsyncIterator[Runtime]:
    """All that answers need, without a door. No model is on the shelf until one is asked for (or `watcher.begin()`)."""
    backend = choose_backend(settings)
    async with visiting(settings) as database, recording(settings, database, command) as writer:
        loaded_models, keyring = LoadedModels(settings.models_dir, backend), Keyring()
        poller, metrics = DatabasePoller(database, loaded_models, keyring), make_metrics()
        checkpoints = Checkpoints(database, settings.data_dir, utc_now, metrics)
        yield assemble(settings, backend, Parts(database, loaded_models, keyring, poller, writer, checkpoints, metrics))


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Database]:
    database = open_database(settings, statement_seconds=None)
    try:
        yield database
    except ProgrammingError as error:  # the tables are there, or the checks would have said so
        raise DatabaseNotReady(
            "The login of NORMALCY_DATABASE_URL lacks the rights that this command needs."
        ) from error
    finally:
        await database.close()
