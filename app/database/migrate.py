"""Migrations: Alembic in code, with the revisions in `migrations/`, and the monthly partitions of PostgreSQL.

There is one partition per month, so that an old month can be detached as a whole.

Alembic is imported only where a database is not at the newest revision: a service that starts finds it there nearly
always, and Alembic would take a tenth of its start.
"""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.clock import later_month, month_of, utc_now
from app.database import roles
from app.database.engine import Database
from app.errors import DatabaseNotReady

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"
LOCK = 0x6E6F726D  # "norm": two upgrades of one PostgreSQL database take turns

MONTHS_AHEAD = 24  # including this one; two years without an upgrade, and readiness warns long before
MIN_MONTHS_AHEAD = 2  # below it, readiness warns
PARTITIONS = text(
    "SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid "
    "WHERE inhparent = to_regclass('audit_records')"
)


async def upgrade(database: Database, now: datetime | None = None) -> tuple[str, ...]:
    """To the newest revision, with partitions for the months ahead. Returns notes for the operator. Safe to repeat."""
    async with database.writing() as connection:
        return await connection.run_sync(_upgrade, now or utc_now())


async def pending_migrations(database: Database) -> tuple[str, ...]:
    """The revisions that the database lacks, oldest first."""
    async with database.reading() as connection:
        return await connection.run_sync(_pending)


async def partitions_ahead(connection: AsyncConnection, now: datetime) -> int:
    """How many months from this one on have a partition, without a gap."""
    return await connection.run_sync(_partitions_ahead, now)


def partition_name(month: str) -> str:
    return "audit_records_" + month.replace("-", "_")


def create_partitions(connection: Connection, now: datetime) -> None:
    present = set(connection.scalars(PARTITIONS))
    for step in range(MONTHS_AHEAD):
        month = later_month(month_of(now), step)
        if partition_name(month) not in present:
            _create_partition(connection, month)


def _create_partition(connection: Connection, month: str) -> None:
    """Row triggers come from the parent, statement triggers do not; neither is ENABLE ALWAYS on every version."""
    name = partition_name(month)
    for statement in (
        f"CREATE TABLE {name} PARTITION OF audit_records FOR VALUES IN ('{month}')",
        f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER audit_records_no_change",
        f"CREATE TRIGGER audit_records_no_truncate BEFORE TRUNCATE ON {name} EXECUTE FUNCTION refuse_change()",
        f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER audit_records_no_truncate",
    ):
        connection.execute(text(statement))


def _partitions_ahead(connection: Connection, now: datetime) -> int:
    if connection.dialect.name == "sqlite":
        return MONTHS_AHEAD  # it has no partitions that could run out
    present = set(connection.scalars(PARTITIONS))
    ahead = 0
    while partition_name(later_month(month_of(now), ahead)) in present:
        ahead += 1
    return ahead


def _upgrade(connection: Connection, now: datetime) -> tuple[str, ...]:
    pending = _pending(connection)  # refuses a database that is newer than this program
    if connection.dialect.name == "sqlite":
        if pending:
            _run_migrations(connection)
        return ()
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    notes = roles.become_owner(connection)
    _run_migrations(connection)
    create_partitions(connection, now)
    roles.grant_rights(connection)
    return notes


def _run_migrations(connection: Connection) -> None:
    from alembic import command

    command.upgrade(_config(connection), "head")


def newest_revision() -> str:
    """Revisions are numbered, and their files begin with the number."""
    return max(file.name for file in (MIGRATIONS / "versions").glob("*.py")).partition("_")[0]


def _pending(connection: Connection) -> tuple[str, ...]:
    if _is_at(newest_revision(), connection):
        return ()
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory.from_config(_config(connection))
    present = MigrationContext.configure(connection).get_current_heads()
    if not set(present) <= {revision.revision for revision in script.walk_revisions()}:
        raise DatabaseNotReady("The database was migrated by a newer version of this program.")
    missing = script.iterate_revisions(tuple(script.get_heads()), present or "base")
    return tuple(reversed([revision.revision for revision in missing]))


def _is_at(revision: str, connection: Connection) -> bool:
    if not inspect(connection).has_table("alembic_version"):
        return False
    return connection.scalars(text("SELECT version_num FROM alembic_version")).all() == [revision]


def _config(connection: Connection) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
