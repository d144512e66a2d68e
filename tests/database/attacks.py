"""What a service that was taken over could try with its PostgreSQL login, to reach more than adding records.

Each attempt is a list of statements for a session of its own. `{schema}` is ours.
"""

from app.database.roles import GRANTS, WRITER
from app.database.schema_checks import TABLES

# All but those that the service changes itself: they are no part of the audit.
PROTECTED = tuple(name for name in TABLES if not {"UPDATE", "DELETE"} & set(GRANTS[WRITER].get(name, ())))
ADMIN_KEY = "INSERT INTO {schema}.api_keys VALUES ('attacker', 'x', '', 'admin', '2026-01-01T00:00:00.000Z')"
TAKE_OVER = (
    "CREATE FUNCTION pg_temp.take() RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN "  # noqa: S608
    f"{ADMIN_KEY}; "
    "ALTER TABLE {schema}.audit_records DISABLE TRIGGER audit_records_no_change; "
    "DELETE FROM {schema}.audit_records WHERE kind = 'score'; "
    "ALTER TABLE {schema}.audit_records ENABLE ALWAYS TRIGGER audit_records_no_change; "
    "RETURN 1; END $f$"
)
ASK_FOR_HEAD = (
    "SELECT * FROM {schema}.audit_head('2026-11', '00000000-0000-0000-0000-000000000000')",
    "SELECT * FROM {schema}.audit_head(to_char(now(), 'YYYY-MM'), '00000000-0000-0000-0000-000000000000')",
)
# The attack that succeeded before revision 0003: the owner's function found this view instead of the table.
ORIGINAL = (
    TAKE_OVER,
    "CREATE TEMP VIEW audit_records AS SELECT '2026-11'::text AS month, "
    "'00000000-0000-0000-0000-000000000000'::uuid AS chain_id, pg_temp.take() AS seq, ''::bytea AS row_hash",
    "GRANT SELECT ON pg_temp.audit_records TO PUBLIC",
    ASK_FOR_HEAD[0],
)


def shadowing(kind: str, name: str) -> tuple[str, ...]:
    """A temporary table or view with the name of one of ours, first in the search path."""
    body = "(LIKE {schema}." + name + ")" if kind == "TABLE" else "AS SELECT pg_temp.take() AS seq"
    return (
        TAKE_OVER,
        f"CREATE TEMP {kind} {name} {body}",
        f"GRANT ALL ON pg_temp.{name} TO PUBLIC",
        "SET search_path = pg_temp, {schema}, pg_catalog",
        *ASK_FOR_HEAD,
        f"DELETE FROM {{schema}}.{name}",  # noqa: S608
    )


ATTACKS: dict[str, tuple[str, ...]] = {
    "the original attack": ORIGINAL,
    **{f"a temporary {kind} named {name}": shadowing(kind, name) for kind in ("TABLE", "VIEW") for name in TABLES},
    "a temporary function named like ours": (
        TAKE_OVER,
        "CREATE FUNCTION pg_temp.audit_head(text, uuid) RETURNS bigint LANGUAGE sql AS 'SELECT pg_temp.take()'",
        "SET search_path = pg_temp, {schema}",
        *ASK_FOR_HEAD,
        "SELECT audit_head('2026-11', '00000000-0000-0000-0000-000000000000')",
    ),
    "a temporary trigger function named like ours": (
        "CREATE FUNCTION pg_temp.refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'",
        "SET search_path = pg_temp, {schema}",
        "DELETE FROM {schema}.audit_records",
        "UPDATE {schema}.activations SET version = '9.9.9'",
    ),
    "a temporary operator instead of =": (
        "CREATE FUNCTION pg_temp.evil(text, text) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN "
        + ADMIN_KEY
        + "; RETURN true; END $f$",
        "CREATE OPERATOR pg_temp.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.evil)",
        "SET search_path = pg_temp, {schema}, pg_catalog",
        *ASK_FOR_HEAD,
    ),
    "a temporary operator for uuid": (
        "CREATE FUNCTION pg_temp.evil(uuid, uuid) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN "
        + ADMIN_KEY
        + "; RETURN true; END $f$",
        "CREATE OPERATOR pg_temp.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = pg_temp.evil)",
        "SET search_path = pg_temp, {schema}, pg_catalog",
        *ASK_FOR_HEAD,
    ),
    "a cast of its own": (
        "CREATE FUNCTION pg_temp.evil(text) RETURNS uuid LANGUAGE plpgsql AS $f$ BEGIN "
        + ADMIN_KEY
        + "; RETURN NULL; END $f$",
        "CREATE CAST (text AS uuid) WITH FUNCTION pg_temp.evil(text) AS IMPLICIT",
        *ASK_FOR_HEAD,
    ),
    "a cast without a function": ("CREATE CAST (bytea AS text) WITHOUT FUNCTION AS IMPLICIT", *ASK_FOR_HEAD),
    "a temporary type named like a column's": (
        "CREATE TYPE pg_temp.text AS (a integer)",
        "CREATE DOMAIN pg_temp.uuid AS pg_catalog.text",
        "SET search_path = pg_temp, {schema}, pg_catalog",
        *ASK_FOR_HEAD,
    ),
    "a temporary aggregate": (
        "CREATE AGGREGATE pg_temp.max(bigint) (SFUNC = int8larger, STYPE = bigint)",
        "SET search_path = pg_temp, {schema}, pg_catalog",
        *ASK_FOR_HEAD,
    ),
    "the owner by SET ROLE": ("SET ROLE normalcy_owner", ADMIN_KEY),
    "the owner by SET LOCAL ROLE": ("BEGIN", "SET LOCAL ROLE normalcy_owner", ADMIN_KEY, "COMMIT"),
    "the superuser by SET ROLE": ("SET ROLE postgres", ADMIN_KEY),
    "the superuser by SET SESSION AUTHORIZATION": ("SET SESSION AUTHORIZATION postgres", ADMIN_KEY),
    "the owner by SET SESSION AUTHORIZATION": ("SET SESSION AUTHORIZATION normalcy_owner", ADMIN_KEY),
    "membership of the owner": ("GRANT normalcy_owner TO CURRENT_USER", "SET ROLE normalcy_owner", ADMIN_KEY),
    "more attributes": ("ALTER ROLE CURRENT_USER SUPERUSER", "ALTER ROLE CURRENT_USER CREATEROLE BYPASSRLS"),
    "a role of its own": ("CREATE ROLE attacker SUPERUSER LOGIN",),
    "grants to itself": (
        "GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO CURRENT_USER",
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO PUBLIC",
        "ALTER DEFAULT PRIVILEGES FOR ROLE normalcy_owner GRANT ALL ON TABLES TO CURRENT_USER",
    ),
    "a write-capable predefined role": ("GRANT pg_write_all_data TO CURRENT_USER", "DELETE FROM {schema}.api_keys"),
    "an update": (
        "UPDATE {schema}.audit_records SET status = 1",
        "UPDATE {schema}.api_keys SET scopes = 'admin'",
        "UPDATE {schema}.audit_checkpoints SET signature = ''",
        "UPDATE {schema}.data_keys SET wrapped = NULL, owner = NULL, erased_at = '2026-01-01T00:00:00.000Z'",
    ),
    "an activation without its record": (
        "INSERT INTO {schema}.activations (site, version, sha256, activated_at, activated_by, month, chain_id, seq) "
        "VALUES ('SoV', '9.9.9', 'ab', '2026', 'me', '2026-11', '00000000-0000-0000-0000-000000000000', 2)",
        "INSERT INTO {schema}.activations (site, version, sha256, activated_at, activated_by) "
        "VALUES ('SoV', '9.9.9', 'ab', '2026', 'me')",
    ),
    "an activation with a number of its own": (
        "INSERT INTO {schema}.activations OVERRIDING SYSTEM VALUE SELECT 9223372036854775806, 'SoV', '9.9.9', 'ab', "
        "'2026', 'me', month, chain_id, seq FROM {schema}.audit_records WHERE kind = 'score' LIMIT 1",
    ),
    "a deletion": tuple(f"DELETE FROM {{schema}}.{name}" for name in PROTECTED),  # noqa: S608
    "a truncation": tuple(f"TRUNCATE {{schema}}.{name} CASCADE" for name in TABLES),
    "a partition without its parent": ("DELETE FROM {schema}.{partition}", "TRUNCATE {schema}.{partition}"),
    "a record straight into a partition": ("INSERT INTO {schema}.{partition} SELECT * FROM {schema}.audit_records",),
    "an insertion that updates": (
        "INSERT INTO {schema}.audit_records SELECT * FROM {schema}.audit_records "
        "ON CONFLICT (month, chain_id, seq) DO UPDATE SET status = 1",
        "INSERT INTO {schema}.data_keys SELECT * FROM {schema}.data_keys "
        "ON CONFLICT (key_id) DO UPDATE SET wrapped = NULL",
        "INSERT INTO {schema}.audit_checkpoints SELECT * FROM {schema}.audit_checkpoints "
        "ON CONFLICT (writer, number) DO UPDATE SET signature = ''",
    ),
    "a merge": (
        "MERGE INTO {schema}.audit_records a USING {schema}.audit_records b ON a.record_id = b.record_id "
        "WHEN MATCHED THEN DELETE",
    ),
    "a key": (ADMIN_KEY, "COPY {schema}.api_keys FROM STDIN"),
    "the migration's mark": ("UPDATE {schema}.alembic_version SET version_num = '0001'",),
    "triggers off": (
        "ALTER TABLE {schema}.audit_records DISABLE TRIGGER ALL",
        "ALTER TABLE {schema}.activations DISABLE TRIGGER USER",
        "DROP TRIGGER audit_records_no_change ON {schema}.audit_records",
    ),
    "a trigger of its own": (
        "CREATE FUNCTION pg_temp.forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER forget BEFORE INSERT ON {schema}.audit_records FOR EACH ROW EXECUTE FUNCTION pg_temp.forget()",
    ),
    "a rule": ("CREATE RULE forget AS ON INSERT TO {schema}.audit_records DO INSTEAD NOTHING",),
    "row security": (
        "ALTER TABLE {schema}.audit_records ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY hidden ON {schema}.audit_records USING (false)",
    ),
    "a replication session": ("SET session_replication_role = replica", "DELETE FROM {schema}.audit_records"),
    "the catalogue itself": (
        "SET allow_system_table_mods = on",
        "DELETE FROM pg_trigger",
        "UPDATE pg_proc SET prosecdef = true WHERE proname = 'refuse_change'",
        "UPDATE pg_authid SET rolsuper = true",
    ),
    "our functions replaced": (
        "CREATE OR REPLACE FUNCTION {schema}.refuse_change() RETURNS trigger LANGUAGE plpgsql "
        "AS 'BEGIN RETURN OLD; END'",
        "ALTER FUNCTION {schema}.audit_head(text, uuid) RESET search_path",
        "ALTER FUNCTION {schema}.audit_head(text, uuid) OWNER TO CURRENT_USER",
        "DROP FUNCTION {schema}.refuse_change() CASCADE",
    ),
    "tables changed": (
        "ALTER TABLE {schema}.audit_records OWNER TO CURRENT_USER",
        "ALTER TABLE {schema}.audit_records ADD COLUMN x integer",
        "ALTER TABLE {schema}.audit_records RENAME TO old_records",
        "ALTER TABLE {schema}.audit_records DETACH PARTITION {schema}.{partition}",
        "ALTER TABLE {schema}.audit_records DROP CONSTRAINT audit_records_pkey",
        "ALTER TABLE {schema}.{partition} SET UNLOGGED",
    ),
    "tables dropped": ("DROP TABLE {schema}.audit_records CASCADE", "DROP SCHEMA {schema} CASCADE"),
    "the counter set back": (
        "SELECT setval('{schema}.activations_id_seq', 1)",
        "ALTER SEQUENCE {schema}.activations_id_seq RESTART",
    ),
    "new objects in the schema": (
        "CREATE TABLE {schema}.mine (a integer)",
        "CREATE VIEW {schema}.mine AS SELECT 1",
        "CREATE FUNCTION {schema}.audit_head(text, text) RETURNS bigint LANGUAGE sql AS 'SELECT 1'",
        "CREATE OPERATOR {schema}.=== (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)",
    ),
    "a schema of its own": ("CREATE SCHEMA attacker", "CREATE SCHEMA AUTHORIZATION CURRENT_USER"),
    "a child of the records": ("CREATE TABLE pg_temp.child () INHERITS ({schema}.activations)",),
    "a foreign key on ours": ("CREATE TEMP TABLE held (k text REFERENCES {schema}.api_keys)",),
    "an index that runs code": (
        TAKE_OVER,
        "CREATE INDEX mine ON {schema}.api_keys ((pg_temp.take()))",
    ),
    "statistics and comments": (
        "CREATE STATISTICS mine ON site, version FROM {schema}.activations",
        "COMMENT ON TABLE {schema}.audit_records IS 'mine'",
        "SECURITY LABEL ON TABLE {schema}.audit_records IS 'mine'",
    ),
    "a program of the server": (
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "CREATE TEMP TABLE out (line text)",
        "COPY out FROM PROGRAM 'id'",
    ),
    "files of the server": (
        "COPY {schema}.activations TO '/tmp/normalcy-attempt'",
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT pg_ls_dir('.')",
    ),
    "large objects": (
        "SELECT lo_create(0)",
        "SELECT lo_creat(-1)",
        "SELECT lo_from_bytea(0, 'x')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT lo_export(1, '/tmp/normalcy-attempt')",
    ),
    "an event trigger": (
        "CREATE FUNCTION pg_temp.event() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
        "CREATE EVENT TRIGGER mine ON ddl_command_start EXECUTE FUNCTION pg_temp.event()",
    ),
    "an extension or a language": (
        "CREATE EXTENSION dblink",
        "CREATE LANGUAGE plpython3u",
        "CREATE FUNCTION pg_temp.c() RETURNS integer LANGUAGE c AS 'libc.so.6', 'system'",
        "LOAD 'auto_explain'",
    ),
    "a foreign server": ("CREATE FOREIGN DATA WRAPPER mine", "CREATE SERVER mine FOREIGN DATA WRAPPER mine"),
    "a publication or a subscription": (
        "CREATE PUBLICATION mine FOR TABLE {schema}.audit_records",
        "CREATE SUBSCRIPTION mine CONNECTION 'dbname=x' PUBLICATION mine WITH (connect = false)",
        "SELECT pg_create_logical_replication_slot('mine', 'pgoutput')",
    ),
    "settings of the server": (
        "ALTER SYSTEM SET fsync = off",
        "SET fsync = off",
        "SELECT pg_reload_conf()",
        "ALTER DATABASE {database} SET synchronous_commit = off",
        "ALTER ROLE normalcy_owner SET search_path = pg_temp",
    ),
    "the database": ("DROP DATABASE {database}", "ALTER DATABASE {database} OWNER TO CURRENT_USER"),
    "a security definer function of the owner": (
        TAKE_OVER,
        "ALTER FUNCTION pg_temp.take() OWNER TO normalcy_owner",
        "ALTER FUNCTION pg_temp.take() SECURITY DEFINER",
        "SELECT pg_temp.take()",
    ),
    "a prepared transaction": ("BEGIN", "LOCK TABLE {schema}.audit_records", "PREPARE TRANSACTION 'mine'"),
    "a cursor that updates": (
        "BEGIN",
        "DECLARE c CURSOR FOR SELECT * FROM {schema}.audit_records FOR UPDATE",
        "UPDATE {schema}.audit_records SET status = 1 WHERE CURRENT OF c",
    ),
    "objects handed over": ("REASSIGN OWNED BY normalcy_owner TO CURRENT_USER", "DROP OWNED BY normalcy_owner"),
    "code in a DO block": (
        "DO $d$ BEGIN EXECUTE 'SET ROLE normalcy_owner'; DELETE FROM {schema}.audit_records; END $d$",
    ),
}
