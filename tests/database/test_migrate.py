"""The migrations, from nothing, on both databases."""

from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from app.clock import utc_now
from app.database.engine import Database
from app.database.migrate import (
    MIGRATIONS,
    MONTHS_AHEAD,
    newest_revision,
    partitions_ahead,
    pending_migrations,
    upgrade,
)
from app.database.schema_checks import check_database
from app.database.tables import metadata
from app.errors import DatabaseNotReady, PendingMigrations
from app.settings import Settings

pytestmark = pytest.mark.anyio
REVISIONS = tuple(sorted(file.name[:4] for file in (MIGRATIONS / "versions").glob("*.py")))


def test_there_is_exactly_one_head() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [newest_revision()]


async def test_an_empty_database_is_refused_until_it_is_upgraded(empty: Database) -> None:
    assert await pending_migrations(empty) == REVISIONS
    with pytest.raises(PendingMigrations, match="0001"):
        await check_database(empty)
    assert await upgrade(empty) == ()
    assert await pending_migrations(empty) == ()
    await check_database(empty)


async def test_a_second_upgrade_changes_nothing(empty: Database) -> None:
    await upgrade(empty)
    before = await _schema(empty)
    await upgrade(empty)
    assert await _schema(empty) == before


async def test_the_migrated_tables_are_those_of_the_code(database: Database) -> None:
    async with database.without_timeouts().reading() as connection:
        assert await connection.run_sync(_differences) == []


async def test_a_database_of_a_newer_program_is_refused(own: Database) -> None:
    async with own.writing() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseNotReady, match="newer"):
        await upgrade(own)
    with pytest.raises(DatabaseNotReady, match="newer"):
        await check_database(own)


async def test_partitions_reach_two_years_ahead_and_an_upgrade_adds_the_missing_ones(own: Database) -> None:
    async def ahead() -> int:
        async with own.reading() as connection:
            return await partitions_ahead(connection, utc_now())

    assert await ahead() == MONTHS_AHEAD
    if own.dialect == "sqlite":
        return
    async with own.writing() as connection:
        last = "SELECT max(relid::text) FROM pg_partition_tree('audit_records') WHERE isleaf"
        name = await connection.scalar(text(last))
        await connection.execute(text(f"ALTER TABLE audit_records DETACH PARTITION {name}"))
        await connection.execute(text(f"DROP TABLE {name}"))
    assert await ahead() == MONTHS_AHEAD - 1
    await upgrade(own)
    assert await ahead() == MONTHS_AHEAD


async def test_the_embedded_file_is_private(empty_settings: Settings, empty: Database) -> None:
    await upgrade(empty)
    for file in empty_settings.data_dir.glob("normalcy.sqlite3*"):
        assert file.stat().st_mode & 0o777 == 0o600


def _differences(connection: Connection) -> list[object]:
    def ours(thing: Any, name: str | None, kind: str, *_rest: object) -> bool:
        if kind == "index":
            return bool(thing.info.get("only", connection.dialect.name) == connection.dialect.name)
        if kind == "foreign_key_constraint":  # PostgreSQL lists one more for each month
            return thing.elements[0].target_fullname.split(".")[0] in metadata.tables
        return kind != "table" or name in metadata.tables

    context = MigrationContext.configure(connection, opts={"include_object": ours, "compare_type": True})
    return list(compare_metadata(context, metadata))


async def _schema(database: Database) -> list[object]:
    listing = {
        "sqlite": "SELECT type, name, sql FROM sqlite_master ORDER BY name",
        "postgresql": "SELECT oid::text, relname, relowner::text FROM pg_class WHERE relname ~ 'audit|keys|activ' "
        "ORDER BY oid",
    }
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.execute(text(listing[database.dialect]))]
