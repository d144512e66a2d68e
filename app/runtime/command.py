"""What commands open: the database, an audit writer, or a whole runtime, next to a service that may be running.

What a command records goes into a short chain of its own, sealed when the command ends. A command on an embedded
database does not need the lock of the serving process.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import app
from app.audit.author import Author, CheckpointLog, chains_to_adopt, open_author
from app.audit.changes import Change, open_change
from app.audit.encryption import open_data_keys
from app.audit.signing_key import own_public_key
from app.audit.writer import AuditWriter
from app.clock import utc_now
from app.database.checkpoints import add_checkpoints
from app.database.engine import Database, command_connection
from app.database.migrate import pending_migrations, upgrade
from app.database.schema_checks import check_database
from app.database.sqlite import FILE_NAME
from app.errors import DatabaseNotReady, PendingMigrations
from app.observability import make_metrics
from app.runtime.checkpoints import Checkpoints
from app.runtime.credentials import Keyring
from app.runtime.models import LoadedModels, choose_backend
from app.runtime.poller import DatabasePoller
from app.runtime.runtime import Runtime, process_facts, service_info
from app.runtime.tokens import TokenVerifier
from app.settings import Settings

# From a command to its record: nobody waits for the line as a client of the service does for its 503.
COMMAND_SECONDS = 10.0
NOT_SIGNED = (
    "The audit has chains that nobody has signed, and there is no signing key here. The service signs them when it "
    "starts, if its login may read records; otherwise run this command again with NORMALCY_SIGNING_KEY_FILE."
)


@asynccontextmanager
async def command_database(settings: Settings) -> AsyncIterator[Database]:
    """Checked and ready for changes. An embedded database is created and migrated if necessary, as `serve` does."""
    async with command_connection(settings) as database:
        if database.dialect == "sqlite" and await pending_migrations(database):
            await upgrade(database)
        await check_database(database)
        yield database


@asynccontextmanager
async def existing_database(settings: Settings) -> AsyncIterator[Database]:
    """To read the audit, even if the guards of its tables are missing. Creates nothing: an empty audit looks intact."""
    require_database(settings)
    async with command_connection(settings) as database:
        missing = await pending_migrations(database)
        if missing:
            raise PendingMigrations(missing)
        yield database


async def upgrade_database(settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Applies all pending migrations. Returns their names, and notes for the operator."""
    async with command_connection(settings) as database:
        pending = await pending_migrations(database)
        notes = await upgrade(database)
        return pending, (*notes, *await _sign_found_chains(settings, database))


async def _sign_found_chains(settings: Settings, database: Database) -> tuple[str, ...]:
    """Unless somebody has. A service whose login may not read records cannot do it. Returns notes for the operator.

    Creates no key: this command may run as another user than the service, or in a container that is thrown away.
    """
    found = await chains_to_adopt(database, CheckpointLog(settings.data_dir))
    if found is None:
        return ()
    if own_public_key(settings) is None:
        return (NOT_SIGNED,) if found else ()
    author = await command_author(settings, database, "db upgrade")
    signed = author.signer.found(found, utc_now())
    async with database.writing() as connection:
        await add_checkpoints(connection, [signed])
    try:
        await asyncio.to_thread(author.log.append, signed)
    except OSError as error:
        return (f"The signed checkpoint of the chains that exist is in the database only: {error.strerror}.",)
    return ()


def require_database(settings: Settings, hint: str = "") -> None:
    """Raises DatabaseNotReady where an embedded database would have to be created first."""
    file = settings.data_dir / FILE_NAME
    if not settings.database_url and not file.exists():
        raise DatabaseNotReady(
            f"There is no database at {file.resolve()}: is NORMALCY_DATA_DIR the right folder?{hint}"
        )


def database_location(settings: Settings) -> str:
    """Where the database is, without a password."""
    if not settings.database_url:
        return str((settings.data_dir / FILE_NAME).resolve())
    url = urlsplit(settings.database_url)
    host = url.netloc.rpartition("@")[2] or parse_qs(url.query).get("host", [""])[0]
    return f"{url.path.lstrip('/')} of PostgreSQL at {host or 'localhost'}"


@asynccontextmanager
async def command_writer(settings: Settings, database: Database, command: str) -> AsyncIterator[AuditWriter]:
    """Raises AuditUnavailable if nothing can be recorded."""
    author = await command_author(settings, database, command)
    writer = AuditWriter(database.appender(), author, make_metrics(), budget_seconds=COMMAND_SECONDS)
    try:
        await writer.start(await chains_to_adopt(database, author.log))
        yield writer
    finally:
        await writer.stop()


@asynccontextmanager
async def command_runtime(settings: Settings, command: str) -> AsyncIterator[Runtime]:
    """A runtime without HTTP. Models are loaded when requested; `poller.start()` loads the current ones."""
    backend = choose_backend(settings)
    async with command_database(settings) as database, command_writer(settings, database, command) as writer:
        loaded_models, keyring, metrics = LoadedModels(settings.models_dir, backend), Keyring(), make_metrics()
        yield Runtime(
            settings,
            database,
            loaded_models,
            keyring,
            TokenVerifier(),
            DatabasePoller(database, loaded_models, keyring),
            writer,
            Checkpoints(database, settings.data_dir, utc_now, metrics),
            await open_data_keys(settings, database, create=not settings.database_url),
            metrics,
            service_info(settings, backend),
        )


async def command_author(settings: Settings, database: Database, command: str) -> Author:
    """Which command writes a chain, for the first record of the chain, and its signer."""
    facts = process_facts(settings) | {"command": command, "version": app.__version__}
    return await open_author(settings, database, facts)


@asynccontextmanager
async def command_change(settings: Settings, command: str) -> AsyncIterator[Change]:
    """A change of a key, with its record, committed at the end of the block."""
    async with (
        command_database(settings) as database,
        open_change(database, await command_author(settings, database, command)) as change,
    ):
        yield change
