"""Alembic in code: the revisions of `migrations/` bring either database to the tables of this program."""

from datetime import datetime
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from app.clock import utc_now
from app.database import partitions, roles
from app.database.engine import Database
from app.errors import DatabaseNotReady

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"
LOCK = 0x6E6F726D  # "norm": two upgrades of one PostgreSQL database take turns


async def upgrade(database: Database, now: datetime | None = None) -> tuple[str, ...]:
    """To the newest revision, with partitions well ahead. Returns notes for the operator. Harmless to repeat."""
    async with database.writing() as connection:
        return await connection.run_sync(_upgrade, now or utc_now())


async def pending_migrations(database: Database) -> tuple[str, ...]:
    """The revisions that the database lacks, oldest first."""
    async with database.reading() as connection:
        return await connection.run_sync(_pending)


def _upgrade(connection: Connection, now: datetime) -> tuple[str, ...]:
    _pending(connection)  # refuses a database that is newer than this program
    if connection.dialect.name == "sqlite":
        command.upgrade(_config(connection), "head")
        return ()
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    notes = roles.become_owner(connection)
    command.upgrade(_config(connection), "head")
    partitions.create_ahead(connection, now)
    roles.grant(connection)
    return notes


def _pending(connection: Connection) -> tuple[str, ...]:
    script = ScriptDirectory.from_config(_config(connection))
    present = MigrationContext.configure(connection).get_current_heads()
    if not set(present) <= {revision.revision for revision in script.walk_revisions()}:
        raise DatabaseNotReady("The database was migrated by a newer version of this program.")
    missing = script.iterate_revisions(tuple(script.get_heads()), present or "base")
    return tuple(reversed([revision.revision for revision in missing]))


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
