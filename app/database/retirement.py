"""Remove months of the audit from the database: the one change of append-only tables, by their owner alone.

On PostgreSQL the partition of a month is detached and stays as a table of its own. SQLite has no partitions: there the
rows are deleted, after they were exported. The triggers that refuse this are off only within the transaction.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.migrate import partition_name
from app.database.records import RecordPosition
from app.database.schema_checks import sqlite_trigger
from app.database.tables import activations

# Whoever waits for the lock makes all writers wait behind it: scores have two seconds.
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '1s'"
DETACH = "ALTER TABLE audit_records DETACH PARTITION {partition}"
DELETE = text("DELETE FROM audit_records WHERE month = :month")
GUARDS_OFF = {
    "postgresql": ("ALTER TABLE activations DISABLE TRIGGER activations_no_change",),
    "sqlite": ("DROP TRIGGER activations_no_update", "DROP TRIGGER audit_records_no_delete"),
}
GUARDS_ON = {
    "postgresql": ("ALTER TABLE activations ENABLE ALWAYS TRIGGER activations_no_change",),
    "sqlite": (sqlite_trigger("activations", "no_update"), sqlite_trigger("audit_records", "no_delete")),
}


async def keep_months(connection: AsyncConnection) -> None:
    """No month leaves until the transaction ends. Must be its first statement: PostgreSQL detaches a partition also for
    a transaction that sees the state before, and so no signature that the month was retired."""
    if connection.dialect.name == "postgresql":
        await connection.exec_driver_sql("LOCK TABLE ONLY audit_records IN ACCESS SHARE MODE")


async def remove_months(
    connection: AsyncConnection, months: Sequence[str], moved: Mapping[int, RecordPosition]
) -> None:
    """`moved`: the new positions of the records of activations, by id, for those that were in these months."""
    is_postgres = connection.dialect.name == "postgresql"
    if is_postgres:
        await connection.exec_driver_sql(LOCK_TIMEOUT)
    for statement in GUARDS_OFF[connection.dialect.name]:
        await connection.exec_driver_sql(statement)
    for number, position in moved.items():
        refer = activations.update().where(activations.c.id == number).values(position._asdict())
        await connection.execute(refer)
    for month in () if is_postgres else months:
        await connection.execute(DELETE, {"month": month})
    for statement in GUARDS_ON[connection.dialect.name]:
        await connection.exec_driver_sql(statement)
    for month in months if is_postgres else ():  # last: nobody can read or write records from here to the commit
        await connection.exec_driver_sql(DETACH.format(partition=partition_name(month)))
