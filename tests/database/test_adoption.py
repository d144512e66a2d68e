"""A database from before keys and activations were recorded: each row gets a record, as if it had been."""

import json

import pytest
from alembic import command
from sqlalchemy import Connection, text

from app.audit.verify import verify_tables
from app.clock import timestamp, utc_now
from app.database.activations import current_activations, history
from app.database.engine import Database
from app.database.keys import list_keys, make_key
from app.database.migrate import PARTITIONS, _config, create_partitions, upgrade
from app.database.roles import become_owner
from app.database.schema_checks import check_database
from tests.audit.recording import activate, all_rows, verified

pytestmark = pytest.mark.anyio
NOW = timestamp(utc_now())
KEY = make_key("ward 7", ["score", "admin"], utc_now()).key
VERSIONS = [("SoV", "1.0.0"), ("AA", "1.0.0"), ("SoV", "1.1.0")]


def before_0004(connection: Connection) -> None:
    """As `db upgrade` of the version before left it, with rows that were made then."""
    postgres = connection.dialect.name == "postgresql"
    if postgres:
        become_owner(connection)
    command.upgrade(_config(connection), "0003")
    if postgres:
        create_partitions(connection, utc_now())
    keys = "INSERT INTO api_keys VALUES (:id, :name, :secret, :scopes, :at, :expires, :revoked)"
    row = {"name": "ward 7", "secret": KEY.secret_sha256, "scopes": "admin score", "at": NOW, "expires": None}
    connection.execute(text(keys), row | {"id": KEY.key_id, "revoked": None})
    connection.execute(text(keys), row | {"id": "revoked2", "revoked": NOW})
    for site, version in VERSIONS:
        connection.execute(
            text(
                "INSERT INTO activations (site, version, sha256, activated_at, activated_by) "
                "VALUES (:site, :version, :sha256, :at, 'admin')"
            ),
            {"site": site, "version": version, "sha256": "ab" * 32, "at": NOW},
        )


@pytest.fixture
async def older(empty: Database) -> Database:
    async with empty.writing() as connection:
        await connection.run_sync(before_0004)
    return empty


async def test_every_row_gets_a_record_that_says_so(older: Database) -> None:
    await upgrade(older)
    await check_database(older)
    assert (await verified(older)).intact
    adopted = [json.loads(row.payload) for row in await all_rows(older) if row.kind in ("key", "activation")]
    assert {record["output"]["step"] for record in adopted} == {"adopted"}
    assert len(adopted) == 2 + len(VERSIONS)
    async with older.reading() as connection:
        assert await verify_tables(connection) == ()
        assert {key.key_id: key.revoked_at for key in await list_keys(connection)} == {
            KEY.key_id: None,
            "revoked2": NOW,
        }
        assert (await list_keys(connection))[0].expires_at is None  # as it was made
        current = await current_activations(connection)
        assert {site: one.version for site, one in current.items()} == {"SoV": "1.1.0", "AA": "1.0.0"}
        assert [period.activation.version for period in await history(connection, "SoV")] == ["1.0.0", "1.1.0"]


async def test_a_later_upgrade_adopts_nothing(older: Database) -> None:
    """A key that somebody puts into the table afterwards stays without a record."""
    await upgrade(older)
    smuggled = (
        "INSERT INTO api_keys (key_id, name, secret_sha256, scopes, created_at) "
        "VALUES ('smuggled', 'x', :secret, 'admin', :at)"
    )
    async with older.writing() as connection:
        await connection.execute(text(smuggled), {"secret": bytes(32), "at": NOW})
    await upgrade(older)
    async with older.reading() as connection:
        assert [finding.row for finding in await verify_tables(connection)] == ["smuggled"]


async def test_activations_go_on_after_those_that_were_adopted(older: Database) -> None:
    await upgrade(older)
    async with older.writing() as connection:
        made = await activate(connection)
    assert made.id == len(VERSIONS) + 1
    async with older.reading() as connection:
        assert await verify_tables(connection) == ()


@pytest.mark.parametrize("empty_settings", ["postgresql"], indirect=True)
async def test_rows_are_adopted_where_this_month_had_no_partition(older: Database) -> None:
    async with older.writing() as connection:
        for name in await connection.scalars(PARTITIONS):
            await connection.execute(text(f"DROP TABLE {name}"))
    await upgrade(older)
    async with older.reading() as connection:
        assert await verify_tables(connection) == ()


async def test_an_empty_database_gets_no_records(empty: Database) -> None:
    await upgrade(empty)
    assert await all_rows(empty) == []
