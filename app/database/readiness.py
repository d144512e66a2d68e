"""What refuses a start: a database that would lose, or let someone quietly change, what it was given."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import Connection, inspect, text

from app.database.durability import POSTGRES, PostgresDurability, postgres_weakness
from app.database.engine import Database
from app.database.filesystem import refuse_network_folder
from app.database.migrate import pending_migrations
from app.database.partitions import NAMES, partitions_ahead
from app.database.tables import audit_records
from app.database.times import utc_now
from app.errors import DatabaseNotReady, PendingMigrations

APPEND_ONLY = ("audit_records", "activations")
SQLITE_GUARDS = ("no_update", "no_delete", "no_replace")
POSTGRES_GUARDS = ("no_change", "no_truncate")
TRIGGERS = text(
    "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE tgenabled = 'A'"  # A: also in replication sessions
)


async def check_database(database: Database, now: datetime | None = None) -> None:
    """Raises `DatabaseNotReady` with the first reason, in one sentence."""
    if database.dialect == "sqlite":
        refuse_network_folder(database.file.parent)
    missing = await pending_migrations(database)
    if missing:
        raise PendingMigrations(missing)
    async with database.reading() as connection:
        await connection.run_sync(check_guards)
        if await connection.run_sync(partitions_ahead, now or utc_now()) == 0:
            raise DatabaseNotReady("The audit has no partition for this month: run `normalcy db upgrade`.")


def check_guards(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        _check_durability(connection)
        _check_postgres(connection)
    else:
        _check_sqlite(connection)
    _check_fence(connection)


def _check_durability(connection: Connection) -> None:
    """The audit writer asks again while it runs. On SQLite it is the writer's own connection that counts."""
    weakness = postgres_weakness(PostgresDurability(*connection.execute(text(POSTGRES)).one()))
    if weakness:
        raise DatabaseNotReady(weakness)


def _check_postgres(connection: Connection) -> None:
    present = {f"{table}.{trigger}" for table, trigger in connection.execute(TRIGGERS)}
    partitions = dict.fromkeys(connection.scalars(NAMES), "audit_records")
    _check_guards(present, {name: name for name in APPEND_ONLY} | partitions, POSTGRES_GUARDS)


def _check_sqlite(connection: Connection) -> None:
    triggers = text("SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger'")
    present = {f"{table}.{trigger}" for table, trigger in connection.execute(triggers)}
    _check_guards(present, {name: name for name in APPEND_ONLY}, SQLITE_GUARDS)


def _check_guards(present: set[str], tables: Mapping[str, str], guards: Iterable[str]) -> None:
    """`tables`: the table and the name with which its triggers begin."""
    wanted = {f"{table}.{prefix}_{guard}" for table, prefix in tables.items() for guard in guards}
    if wanted - present:
        raise DatabaseNotReady(f"The audit is not append-only: {min(wanted - present)} is missing or disabled.")


def _check_fence(connection: Connection) -> None:
    """Without the key two writers of one chain could both commit."""
    key = inspect(connection).get_pk_constraint("audit_records")["constrained_columns"]
    if key != list(audit_records.primary_key.columns.keys()):
        raise DatabaseNotReady("The table audit_records has lost its primary key.")
