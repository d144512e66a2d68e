"""Whether a commit that was acknowledged survives a crash and a loss of power.

Asked of every new connection of the audit writer and once a minute after that: an operator, or whoever may alter the
database or the role, can change these settings at any time, and a reload is enough.

What is accepted of `synchronous_commit`: `on` and `remote_apply` flush the record here and, where synchronous standbys
are named, there. `local` flushes it here alone, and `remote_write` does not wait for the standby's disk: both equal
`on` without synchronous standbys, and both are refused with them, because then the operator asked for records that
survive the loss of this machine.
"""

from typing import NamedTuple

from sqlalchemy import Connection, text

from app.errors import NotDurable

# Unlogged tables are emptied by a crash.
POSTGRES = """
    SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
        current_setting('synchronous_commit') AS synchronous_commit,
        current_setting('synchronous_standby_names') AS synchronous_standby_names,
        EXISTS (
            SELECT FROM pg_class WHERE relpersistence <> 'p' AND (oid = to_regclass('audit_records')
                OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('audit_records')))
        ) AS has_unlogged_records
"""
WAITS_FOR_EVERY_DISK = ("on", "remote_apply")
WAITS_FOR_THIS_DISK = ("local", "remote_write")
SQLITE_FULL = 2  # 3, EXTRA, is more; NORMAL loses the last commits with the power
SQLITE_JOURNAL = "wal"


def refuse_loss(connection: Connection) -> None:
    """Raises NotDurable if a commit of this connection could be lost after it was acknowledged."""
    if connection.dialect.name == "postgresql":
        weakness = postgres_weakness(PostgresDurability(*connection.execute(text(POSTGRES)).one()))
    else:
        asked = ("PRAGMA synchronous", "PRAGMA journal_mode")
        weakness = sqlite_weakness(*(connection.execute(text(pragma)).scalar_one() for pragma in asked))
    if weakness:
        raise NotDurable(weakness)


class PostgresDurability(NamedTuple):
    """A row of the query above."""

    fsync: str
    full_page_writes: str
    synchronous_commit: str
    synchronous_standby_names: str
    has_unlogged_records: bool


def postgres_weakness(found: PostgresDurability) -> str | None:
    """Why acknowledged records could be lost, in one sentence. None: they are durable."""
    for setting, value in (("fsync", found.fsync), ("full_page_writes", found.full_page_writes)):
        if value != "on":
            return f"PostgreSQL runs with {setting}={value} and may lose records: set it to on."
    commit, standbys = found.synchronous_commit, found.synchronous_standby_names.strip()
    if commit in WAITS_FOR_THIS_DISK and standbys:
        return f"PostgreSQL runs with synchronous_commit={commit} beside synchronous standbys: set it to on."
    if commit not in WAITS_FOR_EVERY_DISK + WAITS_FOR_THIS_DISK:
        return f"PostgreSQL runs with synchronous_commit={commit} and may lose records: set it to on."
    if found.has_unlogged_records:
        return "The table audit_records, or a partition of it, is UNLOGGED: a crash would empty it."
    return None


def sqlite_weakness(synchronous: int, journal_mode: str) -> str | None:
    if synchronous < SQLITE_FULL:
        return f"SQLite runs with synchronous={synchronous} and may lose records: it has to be FULL."
    if journal_mode != SQLITE_JOURNAL:
        return f"SQLite runs with journal_mode={journal_mode}: it has to be WAL."
    return None
