"""What each login on PostgreSQL may do."""

import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]
import pytest

from app.audit.verify import verify_tables
from app.audit.writer import AuditWriter
from app.database.activations import all_activations
from app.database.engine import Database, open_database
from app.database.migrate import upgrade
from app.database.roles import AUDITOR, OWNER, WRITER
from app.database.schema_checks import check_database
from app.observability import make_metrics
from app.settings import Settings
from tests.audit.recording import activate, author, score, verified
from tests.postgres import PostgresServer, as_login

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("empty_settings", ["postgresql"], indirect=True)]
PASSWORD = secrets.token_hex(16)
FORBIDDEN_TO_THE_SERVICE = [
    "UPDATE audit_records SET status = 1",
    "DELETE FROM audit_records",
    "TRUNCATE audit_records",
    "INSERT INTO audit_records SELECT * FROM audit_records ON CONFLICT (month, chain_id, seq) DO UPDATE SET status = 1",
    "ALTER TABLE audit_records DISABLE TRIGGER ALL",
    "DROP TABLE audit_records",
    "SET session_replication_role = replica",
    "UPDATE activations SET version = '2'",
    "DELETE FROM api_keys",
    "INSERT INTO api_keys VALUES ('a', 'b', '', 'admin', '')",
    "SET ROLE normalcy_owner",
]


@pytest.fixture
def login(server: PostgresServer) -> Iterator[str]:
    name = f"login_{secrets.token_hex(4)}"
    server.run(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    yield name
    server.run(f"DROP ROLE {name}")


def logged_in_as(settings: Settings, name: str) -> Settings:
    return replace(settings, database_url=as_login(settings.database_url, name, PASSWORD))


@pytest.fixture
async def service(
    own: Database, empty_settings: Settings, login: str, server: PostgresServer
) -> AsyncIterator[Database]:
    server.run(f"GRANT normalcy_writer TO {login}")
    opened = open_database(logged_in_as(empty_settings, login))
    yield opened
    await opened.close()


async def test_the_service_writes_records_and_cannot_read_or_change_them(
    own: Database, service: Database, login: str
) -> None:
    await check_database(service)
    writer = AuditWriter(service.appender(), author(), make_metrics())
    await writer.start()
    await writer.write([score()])
    await writer.stop()
    connection = await asyncpg.connect(service.location)
    for statement in [*FORBIDDEN_TO_THE_SERVICE, "SELECT * FROM audit_records"]:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
    await connection.close()
    assert (await verified(own)).records == 3


async def test_the_service_activates_with_a_record_and_not_without(own: Database, service: Database) -> None:
    async with service.writing() as connection:
        made = await activate(connection)
    connection = await asyncpg.connect(service.location)
    columns = "site, version, sha256, activated_at, activated_by"
    row = f"INSERT INTO activations ({columns}, month, chain_id, seq) VALUES ('AA', '1', 'ab', 'now', 'x', $1, $2, $3)"  # noqa: S608
    for position in ((made.month, made.chain_id, 9), (None, None, None), made.position):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):  # no such record; none at all; another's
            await connection.execute(row, *position)
    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        await connection.execute(f"INSERT INTO activations ({columns}) VALUES ('AA', '1', 'ab', 'now', 'x')")  # noqa: S608
    await connection.close()
    async with own.reading() as reading:
        assert await all_activations(reading) == [made]
        assert await verify_tables(reading) == ()


async def test_an_auditor_reads_and_cannot_write(
    own: Database, service: Database, empty_settings: Settings, login: str, server: PostgresServer
) -> None:
    server.run(f"REVOKE normalcy_writer FROM {login}")
    server.run(f"GRANT normalcy_auditor TO {login}")
    assert (await verified(service)).intact
    async with service.reading() as reading:
        assert await verify_tables(reading) == ()
    connection = await asyncpg.connect(service.location)
    for statement in [*FORBIDDEN_TO_THE_SERVICE, "INSERT INTO audit_records SELECT * FROM audit_records"]:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
    await connection.close()


async def test_the_tables_belong_to_a_role_that_nobody_logs_in_as(own: Database) -> None:
    connection = await asyncpg.connect(own.location)
    owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE tablename ~ '^(audit|api|activ|alembic)'"
    assert [row["tableowner"] for row in await connection.fetch(owners)] == ["normalcy_owner"]
    assert not await connection.fetchval(
        "SELECT bool_or(rolcanlogin) FROM pg_roles WHERE rolname = ANY($1)", [OWNER, WRITER, AUDITOR]
    )
    await connection.close()


async def test_a_login_without_rights_to_roles_can_still_migrate_and_gets_a_note(
    login: str, empty: Database, empty_settings: Settings, server: PostgresServer
) -> None:
    name = urlsplit(empty.location).path.lstrip("/")
    server.run(f"ALTER DATABASE {name} OWNER TO {login}")
    plain = open_database(logged_in_as(empty_settings, login), statement_seconds=None)
    notes = await upgrade(plain)
    assert len(notes) == 1
    assert "normalcy_owner" in notes[0]
    await check_database(plain)
    writer = AuditWriter(plain.appender(), author(), make_metrics())
    await writer.start()
    await writer.stop()
    assert (await verified(plain)).intact
    await plain.close()
