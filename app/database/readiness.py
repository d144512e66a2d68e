"""What refuses a start: a database that would lose, or let someone quietly change, what it was given."""

from datetime import datetime

from sqlalchemy import Connection, inspect

from app.clock import utc_now
from app.database.durability import refuse_loss
from app.database.engine import Database
from app.database.filesystem import refuse_network_folder
from app.database.guards import check_definitions
from app.database.migrate import pending_migrations
from app.database.partitions import partitions_ahead
from app.database.tables import audit_records
from app.errors import DatabaseNotReady, NotDurable, PendingMigrations


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
    check_definitions(connection)
    _check_fence(connection)


def _check_durability(connection: Connection) -> None:
    """The audit writer asks again while it runs. On SQLite it is the writer's own connection that counts."""
    try:
        refuse_loss(connection)
    except NotDurable as error:
        raise DatabaseNotReady(error.reason) from error


def _check_fence(connection: Connection) -> None:
    """Without the keys two writers of one chain could both commit, and an activation needed no record."""
    key = inspect(connection).get_pk_constraint("audit_records")["constrained_columns"]
    if key != list(audit_records.primary_key.columns.keys()):
        raise DatabaseNotReady("The table audit_records has lost its primary key.")
    tied = inspect(connection).get_foreign_keys("activations")
    if "audit_records" not in {key["referred_table"] for key in tied}:
        raise DatabaseNotReady("The table activations has lost the key that ties it to the audit.")
