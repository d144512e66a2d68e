"""The login of the service adds records, and changes nothing else, whatever it tries."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]
import pytest
from alembic import command
from sqlalchemy import Connection, text

from app.audit import changes
from app.clock import month_of, utc_now
from app.database import migrate, roles
from app.database.data_keys import StoredKey, add_keys
from app.database.engine import Database, open_database
from app.database.keys import make_key
from app.database.migrate import partition_name
from app.database.tables import activations
from app.settings import load_settings
from tests.audit.recording import FACTS, activate, change, score, verified
from tests.database.attacks import ATTACKS, ORIGINAL, PROTECTED
from tests.postgres import PostgresServer

pytestmark = pytest.mark.anyio

# Everything that outlives a session, in words; the rows of the tables themselves are read apart.
SNAPSHOT = {
    "relations": "SELECT oid, relname, relnamespace, relowner, relkind::text, relpersistence::text, relacl::text, "
    "relrowsecurity, relispartition FROM pg_class WHERE NOT relnamespace = ANY(SELECT oid FROM temporary)",
    "columns": "SELECT attrelid, attname, attacl::text FROM pg_attribute WHERE attrelid IN (SELECT oid FROM pg_class "
    "WHERE NOT relnamespace = ANY(SELECT oid FROM temporary))",
    "functions": "SELECT oid, proname, pronamespace, proowner, prosecdef, prosrc, proconfig::text, proacl::text "
    "FROM pg_proc WHERE NOT pronamespace = ANY(SELECT oid FROM temporary)",
    "triggers": "SELECT oid, tgrelid, tgname, tgfoid, tgenabled::text FROM pg_trigger WHERE tgrelid IN "
    "(SELECT oid FROM pg_class WHERE NOT relnamespace = ANY(SELECT oid FROM temporary))",
    "schemas": "SELECT oid, nspname, nspowner, nspacl::text FROM pg_namespace "
    "WHERE NOT oid IN (SELECT oid FROM temporary)",
    "databases": "SELECT oid, datname, datdba, datacl::text FROM pg_database WHERE datname = current_database()",
    "roles": "SELECT * FROM pg_roles",
    "members": "SELECT roleid, member, admin_option FROM pg_auth_members",
    "settings": "SELECT setdatabase, setrole, setconfig::text FROM pg_db_role_setting",
    "defaults": "SELECT oid, defaclacl::text FROM pg_default_acl",
    "operators": "SELECT oid, oprname FROM pg_operator WHERE NOT oprnamespace = ANY(SELECT oid FROM temporary)",
    "casts": "SELECT oid FROM pg_cast",
    "rules": "SELECT oid, ev_class FROM pg_rewrite WHERE ev_class IN "
    "(SELECT oid FROM pg_class WHERE NOT relnamespace = ANY(SELECT oid FROM temporary))",
    "policies": "SELECT oid FROM pg_policy",
    "event triggers": "SELECT oid FROM pg_event_trigger",
    "large objects": "SELECT oid FROM pg_largeobject_metadata",
    "extensions": "SELECT oid, extname FROM pg_extension",
    "languages": "SELECT oid FROM pg_language",
    "servers": "SELECT oid FROM pg_foreign_server",
    "publications": "SELECT oid FROM pg_publication",
    "slots": "SELECT slot_name FROM pg_replication_slots",
    "prepared": "SELECT gid FROM pg_prepared_xacts",
    "server": "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes')",
    "the server's file": "SELECT name, setting FROM pg_file_settings",
    "statistics": "SELECT oid FROM pg_statistic_ext",
    "comments": "SELECT objoid, description FROM pg_description WHERE objoid >= 16384",
}
TEMPORARY = "WITH temporary AS (SELECT oid FROM pg_namespace WHERE nspname ~ '^pg_(toast_)?temp') "


@pytest.fixture(params=["public", 'Our "schema"; x'])
async def owner(request: pytest.FixtureRequest, server: PostgresServer) -> AsyncIterator[Database]:
    """A database with something to lose, in the usual schema and in one whose name has to be quoted."""
    quoted = '"' + request.param.replace('"', '""') + '"'
    with server.new_database() as name:
        server.run(f"CREATE SCHEMA IF NOT EXISTS {quoted}", name)
        server.run(f"ALTER DATABASE {name} SET search_path = {quoted}")
        opened = open_database(load_settings({"NORMALCY_DATABASE_URL": server.url(name)}), statement_seconds=None)
        yield opened
        await opened.close()


@pytest.mark.req("REQ-077")
async def test_the_login_of_the_service_changes_nothing(owner: Database, server: PostgresServer) -> None:
    await migrate.upgrade(owner)
    await _fill(owner)
    await _add_key_and_activation(owner)
    assert len(ATTACKS) >= 40
    before = await _snapshot(owner)
    assert [table for table in PROTECTED if not before[f"rows of {table}"]] == []
    for attempt in ATTACKS.values():
        await _try(owner, server, attempt)
    assert _changed(before, await _snapshot(owner)) == []
    assert (await verified(owner)).intact


async def test_nor_would_it_with_temporary_objects(owner: Database, server: PostgresServer) -> None:
    """The function itself is safe; that the login may make no temporary object is a second lock."""
    await migrate.upgrade(owner)
    await _fill(owner)
    await _add_key_and_activation(owner)
    name = urlsplit(owner.location).path.lstrip("/")
    server.run(f"GRANT TEMPORARY ON DATABASE {name} TO PUBLIC")
    before = await _snapshot(owner)
    done = {title: await _try(owner, server, attempt) for title, attempt in ATTACKS.items()}
    assert done["the original attack"] == len(ORIGINAL)  # every statement ran, and did not reach the tables
    assert _changed(before, await _snapshot(owner)) == []
    assert (await verified(owner)).intact


async def test_before_revision_3_the_original_attack_deleted_scores_and_made_a_key(
    owner: Database, server: PostgresServer
) -> None:
    async with owner.writing() as connection:
        await connection.run_sync(_migrate_to, "0002")
    await _fill(owner)
    server.run(f"GRANT TEMPORARY ON DATABASE {urlsplit(owner.location).path.lstrip('/')} TO PUBLIC")
    before = await _snapshot(owner)
    await _try(owner, server, ORIGINAL)
    after = await _snapshot(owner)
    assert set(_changed(before, after)) >= {"rows of audit_records", "rows of api_keys"}
    assert "attacker" in str(after["rows of api_keys"])


async def test_an_upgrade_takes_back_the_right_to_number_activations(owner: Database, server: PostgresServer) -> None:
    async with owner.writing() as connection:
        await connection.run_sync(_migrate_to, "0005")
    name = urlsplit(owner.location).path.lstrip("/")
    server.run("GRANT INSERT ON activations TO normalcy_writer", name)
    await migrate.upgrade(owner)
    login = await asyncpg.connect(server.service_url(name))
    query = "SELECT has_column_privilege('activations', $1, 'INSERT')"
    may_fill = {column.name for column in activations.c if await login.fetchval(query, column.name)}
    await login.close()
    assert may_fill == {column.name for column in activations.c} - {"id"}


def _migrate_to(connection: Connection, revision: str) -> None:
    roles.become_owner(connection)
    command.upgrade(migrate._config(connection), revision)
    migrate.create_partitions(connection, utc_now())
    for statement in (
        "GRANT INSERT ON audit_records TO normalcy_writer",
        "GRANT EXECUTE ON FUNCTION audit_head(text, uuid) TO normalcy_writer",
    ):
        connection.execute(text(statement))


async def _fill(owner: Database) -> None:
    """Without a signature, as before the table of signed checkpoints existed."""
    appender = owner.appender()
    await appender.connect()
    await appender.append(changes.short_chain([score("one"), score("two")], FACTS, utc_now()))
    await appender.close()


async def _add_key_and_activation(owner: Database) -> None:
    async with owner.writing() as connection:
        await activate(connection)
        await changes.add_key(change(connection), make_key("ward", ["score"], utc_now()).key, "admin", utc_now())
        await add_keys(connection, [StoredKey(uuid4(), "a patient", b"wrapped")])


async def _try(owner: Database, server: PostgresServer, attempt: tuple[str, ...]) -> int:
    """As an attacker does: one statement after the other, whatever the ones before came to. How many went through."""
    name = urlsplit(owner.location).path.lstrip("/")
    connection = await asyncpg.connect(server.service_url(name), timeout=30, command_timeout=30)
    schema = await connection.fetchval(
        "SELECT quote_ident(nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
        "WHERE c.oid = to_regclass('audit_records')"
    )
    placeholders = {"schema": schema, "database": name, "partition": partition_name(month_of(utc_now()))}
    done = 0
    try:
        for statement in attempt:
            for name, value in placeholders.items():
                statement = statement.replace("{" + name + "}", value)
            try:
                await connection.execute(statement)
                done += 1
            except (asyncpg.PostgresError, asyncpg.InterfaceError):
                continue
    finally:
        connection.terminate()
    return done


async def _snapshot(owner: Database) -> dict[str, Any]:
    connection = await asyncpg.connect(owner.location)
    try:
        found = {what: sorted(map(str, await connection.fetch(TEMPORARY + query))) for what, query in SNAPSHOT.items()}
        for table in PROTECTED:
            if await connection.fetchval("SELECT to_regclass($1)", table):  # an older revision lacks some
                rows = await connection.fetch(f"SELECT * FROM {table}")  # noqa: S608
                found[f"rows of {table}"] = sorted(map(str, rows))
        return found
    finally:
        await connection.close()


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [what for what in before if before[what] != after[what]]
