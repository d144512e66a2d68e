"""A database that would lose or change what it was given refuses the start."""

import re

import pytest
from sqlalchemy import text

from app.clock import month_of, utc_now
from app.database.engine import Database, open_database
from app.database.migrate import partition_name
from app.database.schema_checks import check_database, check_schema
from app.errors import DatabaseNotReady
from app.settings import Settings

pytestmark = pytest.mark.anyio
PARTITION = partition_name(month_of(utc_now()))

UNLOGGED = ("audit_checkpoints", "activations", "api_keys", "data_keys", "idempotent_answers")
UNIQUE_INDEX_DAMAGE = [  # two data keys of one patient: an erasure would destroy one of them
    "DROP INDEX data_keys_owner; CREATE INDEX data_keys_owner ON data_keys (owner)",
    "DROP INDEX data_keys_owner; CREATE UNIQUE INDEX data_keys_owner ON data_keys (owner) WHERE owner = 'never'",
]
POSTGRES_DAMAGE = [
    "ALTER TABLE audit_records DISABLE TRIGGER audit_records_no_change",
    "ALTER TABLE audit_records ENABLE TRIGGER audit_records_no_truncate",  # no longer ALWAYS
    "DROP TRIGGER activations_no_change ON activations",
    f"ALTER TABLE {PARTITION} DISABLE TRIGGER audit_records_no_change",
    f"DROP TRIGGER audit_records_no_truncate ON {PARTITION}",
    "ALTER TABLE audit_records DROP CONSTRAINT audit_records_pkey CASCADE",
    "ALTER TABLE activations DROP CONSTRAINT activations_record",
    "ALTER TABLE activations DROP CONSTRAINT activations_one_record",
    *UNIQUE_INDEX_DAMAGE,
    "DROP TABLE activations",
    "DROP TABLE audit_records CASCADE",
    f"ALTER TABLE {PARTITION} OWNER TO postgres",
    "ALTER TABLE api_keys OWNER TO normalcy_writer",
    "ALTER FUNCTION audit_head(text, uuid) OWNER TO postgres",
    "ALTER FUNCTION audit_head(text, uuid) RESET search_path",
    "ALTER FUNCTION audit_head(text, uuid) SET search_path = public",
    "ALTER FUNCTION refuse_change() SECURITY DEFINER",
    "DROP FUNCTION audit_head(text, uuid)",
    "CREATE FUNCTION audit_head(text, text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql "
    "SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN OLD; END'",
    "CREATE OR REPLACE FUNCTION audit_head(of_month text, of_chain uuid) RETURNS TABLE (seq bigint, row_hash bytea) "
    "LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS "
    "'SELECT seq, row_hash FROM public.audit_records WHERE month = of_month AND chain_id = of_chain'",
    "SET LOCAL ROLE normalcy_owner; CREATE FUNCTION lent() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
    "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
    "CREATE TRIGGER forget BEFORE INSERT ON audit_records FOR EACH ROW EXECUTE FUNCTION forget()",
    "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'; "
    "DROP TRIGGER activations_no_change ON activations; CREATE TRIGGER activations_no_change BEFORE UPDATE OR DELETE "
    "ON activations FOR EACH ROW EXECUTE FUNCTION forget(); "
    "ALTER TABLE activations ENABLE ALWAYS TRIGGER activations_no_change",
    "DROP TRIGGER activations_no_change ON activations; CREATE TRIGGER activations_no_change BEFORE UPDATE OR DELETE "
    "ON activations FOR EACH ROW WHEN (OLD.site = 'never') EXECUTE FUNCTION refuse_change(); "
    "ALTER TABLE activations ENABLE ALWAYS TRIGGER activations_no_change",
    "DROP TRIGGER activations_no_change ON activations; CREATE TRIGGER activations_no_change BEFORE UPDATE "
    "ON activations FOR EACH ROW EXECUTE FUNCTION refuse_change(); "
    "ALTER TABLE activations ENABLE ALWAYS TRIGGER activations_no_change",
    "CREATE RULE forget AS ON INSERT TO audit_records DO INSTEAD NOTHING",
    "ALTER TABLE audit_records ENABLE ROW LEVEL SECURITY",
    f"CREATE POLICY hidden ON {PARTITION} USING (false)",
    "CREATE UNLOGGED TABLE elsewhere PARTITION OF audit_records FOR VALUES IN ('')",
    *(f"ALTER TABLE {table} SET UNLOGGED" for table in UNLOGGED),
    *(
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey"
        for table in ("audit_checkpoints", "activations", "api_keys", "data_keys", "key_uses", "idempotent_answers")
    ),
]
SQLITE_DAMAGE = [
    *(f"DROP TRIGGER audit_records_{trigger}" for trigger in ("no_update", "no_delete", "no_replace")),
    *(f"DROP TRIGGER activations_{trigger}" for trigger in ("no_update", "no_delete", "no_replace")),
    "CREATE TRIGGER forget AFTER INSERT ON audit_records BEGIN SELECT 1; END",
    "CREATE TRIGGER forget BEFORE INSERT ON AUDIT_RECORDS BEGIN SELECT RAISE(IGNORE); END",
    *UNIQUE_INDEX_DAMAGE,
    "DROP TABLE api_keys; CREATE TABLE api_keys (key_id TEXT)",
    "DROP TRIGGER activations_no_delete; "
    "CREATE TRIGGER activations_no_delete BEFORE DELETE ON activations BEGIN SELECT 1; END",
]


@pytest.mark.req("REQ-083")
async def test_each_missing_protection_refuses_the_start(own: Database) -> None:
    await check_database(own)
    for damage in POSTGRES_DAMAGE if own.dialect == "postgresql" else SQLITE_DAMAGE:
        async with own.engine.connect() as connection:
            for statement in _statements(damage):
                await connection.execute(text(statement))
            with pytest.raises(DatabaseNotReady):
                await check_schema(connection)
            await connection.rollback()
    await check_database(own)


@pytest.mark.parametrize("empty_settings", ["postgresql"], indirect=True)
@pytest.mark.req("REQ-083")
async def test_a_postgres_that_does_not_wait_for_its_disk_refuses_the_start(own: Database) -> None:
    async with own.engine.connect() as connection:
        await check_schema(connection)
        await connection.execute(text("SET LOCAL synchronous_commit = off"))
        with pytest.raises(DatabaseNotReady, match="synchronous_commit=off"):
            await check_schema(connection)


@pytest.mark.parametrize("empty_settings", ["postgresql"], indirect=True)
async def test_every_connection_waits_for_the_disk_whatever_the_database_says(
    own: Database, empty_settings: Settings
) -> None:
    async with own.writing() as connection:
        name = await connection.scalar(text("SELECT current_database()"))
        await connection.execute(text(f"ALTER DATABASE {name} SET synchronous_commit = off"))
    later = open_database(empty_settings)
    await check_database(later)
    async with later.reading() as connection:
        assert await connection.scalar(text("SHOW synchronous_commit")) == "on"
    await later.close()


@pytest.mark.parametrize("empty_settings", ["postgresql"], indirect=True)
async def test_a_month_without_a_partition_refuses_the_start(own: Database) -> None:
    now = utc_now()
    await check_database(own, now.replace(year=now.year + 1))
    with pytest.raises(DatabaseNotReady, match="db upgrade"):
        await check_database(own, now.replace(year=now.year + 3))


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_every_sqlite_connection_waits_for_its_disk(database: Database) -> None:
    appender = database.appender()
    await appender.connect()
    connection = appender._connection  # type: ignore[attr-defined]
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await appender.close()
    async with database.reading() as reader:
        assert await reader.scalar(text("PRAGMA synchronous")) == 2


def _statements(damage: str) -> list[str]:
    """Several are separated by `; ` and a capital; those inside of a function body end with `; END`."""
    return re.split(r"; (?=CREATE |DROP |ALTER )", damage)
