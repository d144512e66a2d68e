"""The monthly partitions of the audit on PostgreSQL: one per month, so that an old month can be detached as a whole."""

from datetime import datetime

from sqlalchemy import Connection, text

from app.clock import later_month, month_of

MONTHS_AHEAD = 24  # with this one; two years without an upgrade, and readiness warns long before
FEWEST_AHEAD = 2  # below it, readiness warns

NAMES = text(
    "SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid "
    "WHERE inhparent = to_regclass('audit_records')"
)


def create_ahead(connection: Connection, now: datetime) -> None:
    present = set(connection.scalars(NAMES))
    for step in range(MONTHS_AHEAD):
        month = later_month(month_of(now), step)
        if partition_name(month) not in present:
            _create(connection, month)


def partitions_ahead(connection: Connection, now: datetime) -> int:
    """How many months from this one on have a partition, without a hole."""
    if connection.dialect.name == "sqlite":
        return MONTHS_AHEAD  # nothing to run out of
    present = set(connection.scalars(NAMES))
    ahead = 0
    while partition_name(later_month(month_of(now), ahead)) in present:
        ahead += 1
    return ahead


def partition_name(month: str) -> str:
    return "audit_records_" + month.replace("-", "_")


def _create(connection: Connection, month: str) -> None:
    """Row triggers come from the parent, those on statements do not; neither brings ENABLE ALWAYS on every version."""
    name = partition_name(month)
    for statement in (
        f"CREATE TABLE {name} PARTITION OF audit_records FOR VALUES IN ('{month}')",
        f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER audit_records_no_change",
        f"CREATE TRIGGER audit_records_no_truncate BEFORE TRUNCATE ON {name} EXECUTE FUNCTION refuse_change()",
        f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER audit_records_no_truncate",
    ):
        connection.execute(text(statement))
