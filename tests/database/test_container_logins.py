"""The scripts that create the container's logins, run as in PostgreSQL's image, on a server that requires passwords."""

import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote

import asyncpg  # type: ignore[import-untyped]
import pytest

from app.audit.writer import AuditWriter
from app.clock import utc_now
from app.database.engine import Database, open_database
from app.database.keys import make_key, save_key
from app.database.login_rights import LoginRights, login_rights
from app.database.migrate import upgrade
from app.database.schema_checks import check_database
from app.errors import DatabaseUnavailable
from app.observability import make_metrics
from app.settings import load_settings
from tests.audit.recording import author, score, verified
from tests.postgres import PrivateServer, private_server

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]
DEPLOY = Path(__file__).parents[2] / "deploy"
LOGINS = ("admin", "manager", "service")
FORBIDDEN_TO_THE_MANAGER = [
    "CREATE ROLE another",
    "CREATE DATABASE another",
    "ALTER ROLE normalcy_manager SUPERUSER",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "SET ROLE postgres",
    "SELECT pg_read_file('/etc/passwd')",
]


@pytest.fixture
def passwords() -> dict[str, str]:
    return {login: secrets.token_hex(32) for login in LOGINS}


@pytest.fixture
def made(passwords: dict[str, str], tmp_path: Path) -> Iterator[PrivateServer]:
    """A server of its own, because roles belong to the whole server, after the scripts have run."""
    with private_server() as server:
        server.run(f"ALTER ROLE postgres PASSWORD '{passwords['admin']}'")
        server.run("CREATE DATABASE normalcy")
        (server.folder / "data" / "pg_hba.conf").write_text("local all all scram-sha-256\n")
        server.run("SELECT pg_reload_conf()")
        for login, password in passwords.items():
            (tmp_path / login).write_text(password)
        run("create-manager-login.sh", server, tmp_path)
        run("create-service-login.sh", server, tmp_path)
        yield server


def run(script: str, server: PrivateServer, files: Path) -> None:
    environment = {
        "PATH": f"{server.binaries}:{os.environ['PATH']}",
        "PGHOST": str(server.folder),
        "PGPASSWORD": (files / "admin").read_text(),  # the image hands it to its scripts
        "POSTGRES_USER": "postgres",
        "POSTGRES_DB": "normalcy",
        "MANAGER_PASSWORD_FILE": str(files / "manager"),
        "SERVICE_PASSWORD_FILE": str(files / "service"),
    }
    subprocess.run(["/bin/sh", DEPLOY / script], env=environment, check=True, capture_output=True)  # noqa: S603


def opened(server: PrivateServer, login: str, password: str) -> Database:
    url = f"postgresql://normalcy_{login}:{password}@/normalcy?host={quote(str(server.folder), safe='')}"
    return open_database(load_settings({"NORMALCY_DATABASE_URL": url}), statement_seconds=None)


@pytest.fixture
async def manager(made: PrivateServer, passwords: dict[str, str]) -> AsyncIterator[Database]:
    database = opened(made, "manager", passwords["manager"])
    yield database
    await database.close()


async def test_migrations_and_keys_need_no_superuser(
    made: PrivateServer, manager: Database, passwords: dict[str, str]
) -> None:
    assert await upgrade(manager) == ()
    assert await upgrade(manager) == ()
    async with manager.writing() as connection:
        await save_key(connection, make_key("ward", ["score"], utc_now()).key)
    service = opened(made, "service", passwords["service"])
    await check_database(service)
    writer = AuditWriter(service.appender(), author(), make_metrics())
    await writer.start()
    await writer.write([score()])
    await writer.stop()
    assert (await verified(manager)).records == 3
    await service.close()


async def test_the_managers_login_owns_the_tables_and_nothing_beyond(manager: Database) -> None:
    await upgrade(manager)
    connection = await asyncpg.connect(manager.location)
    rights = "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles WHERE rolname = $1"
    assert not any(await connection.fetchrow(rights, "normalcy_manager"))
    owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
    assert [row["tableowner"] for row in await connection.fetch(owners)] == ["normalcy_owner"]
    for statement in FORBIDDEN_TO_THE_MANAGER:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
    await connection.close()


async def test_a_database_that_is_older_than_the_managers_login_gets_one(
    made: PrivateServer, manager: Database, passwords: dict[str, str], tmp_path: Path
) -> None:
    await upgrade(manager)
    (tmp_path / "manager").write_text("another")
    run("create-manager-login.sh", made, tmp_path)
    again = opened(made, "manager", "another")
    assert await upgrade(again) == ()
    await again.close()


async def test_a_database_that_was_migrated_before_the_services_login_was_made_gets_one(
    made: PrivateServer, manager: Database, passwords: dict[str, str], tmp_path: Path
) -> None:
    await upgrade(manager)
    administrator = f"postgresql://postgres:{passwords['admin']}@/normalcy?host={quote(str(made.folder), safe='')}"
    connection = await asyncpg.connect(administrator)
    await connection.execute("DROP ROLE normalcy_service; GRANT TEMPORARY ON DATABASE normalcy TO PUBLIC")
    await connection.close()
    for password in (passwords["service"], "another"):  # and it may be repeated
        (tmp_path / "service").write_text(password)
        run("create-service-login.sh", made, tmp_path)
        service = opened(made, "service", password)
        async with service.reading() as reading:
            assert await login_rights(reading) == LoginRights((), ())
        await service.close()


async def test_a_wrong_password_is_refused(made: PrivateServer, manager: Database) -> None:
    intruder = opened(made, "manager", "wrong")
    with pytest.raises(DatabaseUnavailable):
        await upgrade(intruder)
    await intruder.close()
