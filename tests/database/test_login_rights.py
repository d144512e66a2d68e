"""Whatever a login of the service has beyond its grants is found, however it came by it."""

import pytest
from sqlalchemy import text

from app.clock import month_of, utc_now
from app.database.engine import Database
from app.database.login_rights import LoginRights, login_rights
from app.database.migrate import partition_name
from tests.postgres import SERVICE_LOGIN

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("settings", ["postgresql"], indirect=True)]
PARTITION = partition_name(month_of(utc_now()))
VIEW = "CREATE VIEW seen AS SELECT * FROM api_keys"
VIEW_OF_VIEW = "CREATE VIEW again AS SELECT * FROM seen"
LENDING = "CREATE FUNCTION lends() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'DELETE FROM api_keys'"

EXCESS = {
    "GRANT TEMPORARY ON DATABASE {database} TO PUBLIC": "it has TEMPORARY on the database {database}",
    "GRANT CREATE ON DATABASE {database} TO {login}": "it has CREATE on the database {database}",
    "GRANT CREATE ON SCHEMA public TO PUBLIC": "it has CREATE on the schema public",
    "GRANT UPDATE ON audit_records TO {login}": "it has UPDATE on the table audit_records",
    "GRANT UPDATE (status) ON audit_records TO normalcy_writer": "it has UPDATE on the column audit_records.status",
    f"GRANT DELETE ON {PARTITION} TO PUBLIC": f"it has DELETE on the table {PARTITION}",
    f"GRANT SELECT ON {PARTITION} TO normalcy_auditor": f"it has SELECT on the table {PARTITION}",
    "GRANT INSERT ON api_keys TO normalcy_auditor": "it has INSERT on the table api_keys",
    "GRANT INSERT ON activations TO normalcy_writer": "it has INSERT on the table activations",
    "GRANT INSERT (id) ON activations TO normalcy_writer": "it has INSERT on the column activations.id",
    "GRANT TRIGGER ON activations TO {login}": "it has TRIGGER on the table activations",
    "GRANT SELECT ON audit_records TO {login} WITH GRANT OPTION": "SELECT on the table audit_records with grant option",
    "GRANT UPDATE ON SEQUENCE activations_id_seq TO {login}": "it has UPDATE on the sequence activations_id_seq",
    "GRANT EXECUTE ON FUNCTION refuse_change() TO PUBLIC": "it has EXECUTE on the function refuse_change()",
    "GRANT normalcy_owner TO {login}": "it can act as the owner of the function audit_head(text, uuid), the function",
    "ALTER TABLE activations OWNER TO {login}": "it can act as the owner of the sequence activations_id_seq, the table",
    "ALTER SCHEMA public OWNER TO {login}": "it can act as the owner of the schema public",
    "ALTER DATABASE {database} OWNER TO {login}": "it can act as the owner of the database {database}",
    f"SET LOCAL ROLE normalcy_owner; {VIEW}; GRANT INSERT ON seen TO normalcy_writer; RESET ROLE": (
        "it has INSERT on the view seen"
    ),
    f"{VIEW}; {VIEW_OF_VIEW}; GRANT UPDATE (name) ON again TO PUBLIC": ("it has UPDATE on the view column again.name"),
    "CREATE TABLE bell (a text); GRANT INSERT ON bell TO {login}; "
    "CREATE RULE ring AS ON INSERT TO bell DO DELETE FROM api_keys": "it has INSERT on the view bell",
    "ALTER ROLE {login} SUPERUSER": "it is a superuser",
    "ALTER ROLE {login} CREATEROLE": "it has CREATEROLE",
    "ALTER ROLE {login} CREATEDB": "it has CREATEDB",
    "ALTER ROLE {login} REPLICATION": "it has REPLICATION",
    "ALTER ROLE {login} BYPASSRLS": "it has BYPASSRLS",
    "GRANT pg_write_all_data TO {login}": "it is a member of pg_write_all_data",
    "CREATE ROLE middle SUPERUSER; GRANT middle TO {login}": "it is a member of middle, which has SUPERUSER",
    "CREATE ROLE middle; GRANT UPDATE ON api_keys TO middle; ALTER ROLE {login} NOINHERIT; GRANT middle TO {login}": (
        "it has UPDATE on the table api_keys"
    ),
    "ALTER DEFAULT PRIVILEGES FOR ROLE normalcy_owner GRANT ALL ON TABLES TO normalcy_writer": (
        "it has DELETE on the owner's default for new tables"
    ),
}
OF_OTHERS = {
    "GRANT UPDATE, DELETE ON api_keys TO other": "other has DELETE on the table api_keys, UPDATE on the table api_keys",
    "GRANT UPDATE (site) ON activations TO other": "other has UPDATE on the column activations.site",
    f"GRANT INSERT ON {PARTITION} TO other": f"other has INSERT on the table {PARTITION}",
    "GRANT CREATE ON SCHEMA public TO other": "other has CREATE on the schema public",
    "GRANT EXECUTE ON FUNCTION audit_head(text, uuid) TO other": "other has EXECUTE on the function audit_head",
    f"{VIEW}; GRANT DELETE ON seen TO other": "other has DELETE on the view seen",
    f"{LENDING}; GRANT EXECUTE ON FUNCTION lends() TO {{login}}": ("the function lends() runs with the rights of"),
    "CREATE FUNCTION event() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; "
    "CREATE EVENT TRIGGER mine ON ddl_command_start EXECUTE FUNCTION event()": "the event trigger mine of",
    "GRANT SELECT ON alembic_version TO PUBLIC": "PUBLIC has SELECT on the table alembic_version",
    "ALTER DEFAULT PRIVILEGES FOR ROLE normalcy_owner GRANT SELECT ON TABLES TO other": (
        "other has SELECT on the owner's default for new tables"
    ),
}


async def rights_after(database: Database, *statements: str) -> LoginRights:
    """Of the service's login after these statements, which are undone again."""
    async with database.engine.connect() as connection:
        name = str(await connection.scalar(text("SELECT current_database()")))
        for statement in statements:
            await connection.execute(text(statement.format(database=name, login=SERVICE_LOGIN)))
        await connection.execute(text(f"SET LOCAL ROLE {SERVICE_LOGIN}"))
        found = await login_rights(connection)
        await connection.rollback()
    return LoginRights(
        tuple(one.replace(name, "{database}") for one in found.excess),
        tuple(one.replace(name, "{database}") for one in found.of_others),
    )


async def test_the_login_that_the_script_makes_has_nothing_too_much(database: Database) -> None:
    assert await rights_after(database) == LoginRights((), ())


@pytest.mark.parametrize("given", EXCESS)
async def test_a_right_too_many_is_named(database: Database, given: str) -> None:
    found = await rights_after(database, *given.split("; "))
    assert any(EXCESS[given] in one for one in found.excess), found
    assert all(one.startswith("PUBLIC") for one in found.of_others)  # which is everybody


@pytest.mark.parametrize("given", OF_OTHERS)
async def test_rights_of_others_are_reported_and_are_not_the_logins(database: Database, given: str) -> None:
    found = await rights_after(database, "CREATE ROLE other", *given.split("; "))
    assert found.excess == ()
    assert len(found.of_others) == 1
    assert OF_OTHERS[given] in found.of_others[0]


async def test_a_grant_that_the_roles_have_anyway_is_no_excess(database: Database) -> None:
    given = "GRANT SELECT ON audit_records TO {login}"
    assert await rights_after(database, given) == LoginRights((), ())


async def test_a_login_that_is_monitored_may_serve(database: Database) -> None:
    assert await rights_after(database, "GRANT pg_monitor TO {login}") == LoginRights((), ())


async def test_what_only_looks_or_cannot_be_executed_is_no_excess(database: Database) -> None:
    for given in (
        f"{VIEW}; GRANT SELECT ON seen TO {{login}}",
        f"{LENDING}; REVOKE ALL ON FUNCTION lends() FROM PUBLIC",
    ):
        assert await rights_after(database, *given.split("; ")) == LoginRights((), ())
