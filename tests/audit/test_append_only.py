"""Records can be added and nothing else, whichever statement tries."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.audit.writer import AuditWriter
from app.clock import month_of, utc_now
from app.database.activations import activations_since
from app.database.engine import Database
from app.database.migrate import partition_name
from app.database.records import AuditRow
from app.errors import DatabaseUnavailable
from tests.audit.recording import activate, all_rows, score

pytestmark = pytest.mark.anyio
ON_POSTGRES = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
ON_SQLITE = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
PARTITION = partition_name(month_of(utc_now()))

OTHERS = ", ".join(name for name in AuditRow._fields if name not in ("month", "seq"))
ACTIVATED, POSITION = "version, sha256, activated_at, activated_by", "month, chain_id, seq"

CHANGES = [
    "UPDATE audit_records SET status = 201",
    "UPDATE audit_records SET payload = payload WHERE seq = 2",
    "DELETE FROM audit_records WHERE seq = 2",
    "DELETE FROM audit_records",
    "UPDATE activations SET version = '9.9.9'",
    "DELETE FROM activations",
]
POSTGRES_CHANGES = [
    *CHANGES,
    "TRUNCATE audit_records",
    "TRUNCATE activations",
    f"TRUNCATE {PARTITION}",
    f"UPDATE {PARTITION} SET status = 201",  # noqa: S608
    f"DELETE FROM {PARTITION}",  # noqa: S608
    "INSERT INTO audit_records SELECT * FROM audit_records ON CONFLICT (month, chain_id, seq) DO UPDATE SET status = 1",
]
SQLITE_CHANGES = [
    *CHANGES,
    "INSERT OR REPLACE INTO audit_records SELECT * FROM audit_records WHERE seq = 2",
    "REPLACE INTO audit_records SELECT * FROM audit_records",
    "INSERT OR IGNORE INTO audit_records SELECT * FROM audit_records",
    "INSERT INTO audit_records SELECT * FROM audit_records WHERE true ON CONFLICT DO UPDATE SET status = 1",
    "UPDATE OR REPLACE audit_records SET seq = 1 WHERE seq = 2",
    f"INSERT OR REPLACE INTO activations SELECT id, 'AA', {ACTIVATED}, month, chain_id, seq + 1 FROM activations",  # noqa: S608
    f"INSERT OR REPLACE INTO activations SELECT id + 1, 'AA', {ACTIVATED}, {POSITION} FROM activations",  # noqa: S608
    f"INSERT OR REPLACE INTO audit_records (rowid, month, seq, {OTHERS}) "  # noqa: S608 - another key, a row's rowid
    f"SELECT 1, month, 77, {OTHERS} FROM audit_records WHERE seq = 2",
]


async def allowed(database: Database, changes: list[str], *before: str) -> list[str]:
    """Those of the changes that went through. Each is tried in a transaction of its own, after `before`."""
    found = []
    for change in changes:
        try:
            async with database.writing() as connection:
                for statement in (*before, change):
                    await connection.execute(text(statement))
        except (DBAPIError, DatabaseUnavailable):
            continue
        found.append(change)
    return found


@pytest.fixture
async def rows(database: Database, writer: AuditWriter) -> list[AuditRow]:
    await writer.write([score(), score()])
    async with database.writing() as connection:
        await activate(connection)
    return await all_rows(database)


@ON_POSTGRES
@pytest.mark.req("REQ-076")
async def test_postgres_refuses_every_change_even_from_its_superuser(database: Database, rows: list[AuditRow]) -> None:
    assert await allowed(database, POSTGRES_CHANGES) == []
    assert await all_rows(database) == rows


@ON_POSTGRES
async def test_a_replication_session_is_refused_too(database: Database, rows: list[AuditRow]) -> None:
    assert await allowed(database, POSTGRES_CHANGES, "SET LOCAL session_replication_role = replica") == []
    assert await all_rows(database) == rows


@ON_SQLITE
@pytest.mark.parametrize("recursive_triggers", ["ON", "OFF"])
@pytest.mark.req("REQ-076")
async def test_sqlite_refuses_every_change_whatever_the_connection_is_set_to(
    database: Database, rows: list[AuditRow], recursive_triggers: str
) -> None:
    async with database.engine.connect() as connection:  # the pool hands the same one out again
        await connection.execute(text(f"PRAGMA recursive_triggers = {recursive_triggers}"))
    assert await allowed(database, SQLITE_CHANGES) == []
    assert await all_rows(database) == rows
    async with database.reading() as connection:
        assert [activation.site for activation in await activations_since(connection, 0)] == ["SoV"]
