"""Start-up check of the database: is it migrated, durable, and still as the migrations left it?

Triggers, functions, keys and owners are compared with their definitions here. What the migrations did not create is
refused as well: another trigger or rule can discard what is added, a row security policy can hide what is read, and a
function of the owner that runs with the owner's rights lends them to its callers.

To make another table append-only, add it to `SAME_ROW` and write its triggers in the next revision; to change a
function, change it here and in a revision. The grants are in `roles.py`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Index, TextClause, UniqueConstraint, inspect, text
from sqlalchemy.engine.interfaces import ReflectedIndex
from sqlalchemy.ext.asyncio import AsyncConnection

from app.clock import utc_now
from app.database.appender import check_durability_sync
from app.database.engine import Database
from app.database.migrate import partitions_ahead, pending_migrations
from app.database.sqlite import check_local_folder
from app.database.tables import metadata
from app.errors import DatabaseNotReady, NotDurable, PendingMigrations

# The append-only tables, and when a new row has the key of an existing one.
SAME_ROW = {
    "audit_records": "month = NEW.month AND chain_id = NEW.chain_id AND seq = NEW.seq",
    "audit_checkpoints": "writer = NEW.writer AND number = NEW.number",
    "activations": "id = NEW.id OR (month = NEW.month AND chain_id = NEW.chain_id AND seq = NEW.seq)",
}

SQLITE_TRIGGERS = {
    "no_update": "BEFORE UPDATE ON {table}",
    "no_delete": "BEFORE DELETE ON {table}",
    "no_replace": "BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})",
}
SQLITE_TRIGGER = "CREATE TRIGGER {table}_{trigger} {when} BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"

# Bits of pg_trigger.tgtype.
ROW, BEFORE, DELETE, UPDATE, TRUNCATE = 1, 2, 8, 16, 32
POSTGRES_TRIGGERS = {"no_change": ROW | BEFORE | DELETE | UPDATE, "no_truncate": BEFORE | TRUNCATE}
ALWAYS = "A"  # also in replication sessions


class Function(NamedTuple):
    """Everything that determines what a function does. `{schema}` is our schema, quoted."""

    name: str
    result: str
    language: str
    volatility: str
    runs_as_owner: bool
    settings: tuple[str, ...]
    body: str


SAFE_PATH = ("search_path=pg_catalog, pg_temp",)
POSTGRES_FUNCTIONS = (
    Function(
        "audit_head(text, uuid)",
        "TABLE(seq bigint, row_hash bytea)",
        "sql",
        "s",
        runs_as_owner=True,
        settings=SAFE_PATH,
        body="SELECT r.seq, r.row_hash FROM {schema}.audit_records r "
        "WHERE r.month = of_month AND r.chain_id = of_chain ORDER BY r.seq DESC LIMIT 1",
    ),
    Function(
        "refuse_change()",
        "trigger",
        "plpgsql",
        "v",
        runs_as_owner=False,
        settings=SAFE_PATH,
        body="BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege'; END",
    ),
)
TABLES = (*metadata.tables, "alembic_version")
FUNCTION_NAMES = tuple(function.name.partition("(")[0] for function in POSTGRES_FUNCTIONS)

# Our tables (with their partitions, each with the name of its parent), sequences and functions in PostgreSQL's
# catalogue, in whichever schema they are. `views` is everything through which our tables can be reached, including
# tables with rules: it has the rights of its owner.
OUR_OBJECTS = """
    WITH RECURSIVE our_schema AS (
        SELECT n.oid, quote_ident(nspname) AS name, relowner AS owner
        FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = to_regclass('audit_records')
    ), tables AS (
        SELECT c.oid, c.relname FROM pg_class c JOIN our_schema ON relnamespace = our_schema.oid
        WHERE relname = ANY(:tables)
        UNION SELECT inhrelid, tables.relname FROM pg_inherits JOIN tables ON inhparent = tables.oid
    ), sequences AS (
        SELECT c.oid FROM pg_class c JOIN pg_depend d ON d.objid = c.oid AND classid = 'pg_class'::regclass
        WHERE relkind = 'S' AND refobjid IN (SELECT oid FROM tables)
    ), functions AS (
        SELECT p.oid FROM pg_proc p JOIN our_schema ON pronamespace = our_schema.oid WHERE proname = ANY(:functions)
    ), reached AS (
        SELECT oid FROM tables
        UNION SELECT ev_class FROM reached
            JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = reached.oid
            JOIN pg_rewrite r ON classid = 'pg_rewrite'::regclass AND objid = r.oid
    ), views AS (
        SELECT oid, oid::regclass::text AS name FROM reached WHERE oid NOT IN (SELECT oid FROM tables)
    )
"""


def query_our_objects(select: str) -> TextClause:
    """`select` reads from our_schema, tables, sequences, functions and views."""
    return text(OUR_OBJECTS + select).bindparams(tables=list(TABLES), functions=list(FUNCTION_NAMES))


OUR_SCHEMA = query_our_objects("SELECT name FROM our_schema")
FUNCTIONS = query_our_objects("""
    SELECT proname || '(' || oidvectortypes(proargtypes) || ')', pg_get_function_result(p.oid), lanname,
        provolatile::text, prosecdef, coalesce(proconfig, '{}'), prosrc
    FROM our_schema, pg_proc p JOIN pg_language l ON l.oid = prolang
    WHERE p.oid IN (SELECT oid FROM functions)
        OR prosecdef AND proowner = our_schema.owner AND pronamespace <> 'pg_catalog'::regnamespace
            AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e')
""")
TRIGGERS = query_our_objects("""
    SELECT c.relname, tgname, proname, pronamespace = our_schema.oid, tgtype, tgenabled::text,
        tgqual IS NULL AND tgnargs = 0 AND tgattr = ''::int2vector AND NOT tgdeferrable,
        pronamespace = 'pg_catalog'::regnamespace AND proname LIKE 'RI\\_FKey\\_%'
    FROM our_schema, pg_trigger JOIN tables ON tables.oid = tgrelid JOIN pg_class c ON c.oid = tgrelid
        JOIN pg_proc p ON p.oid = tgfoid
""")
PARTITIONS = query_our_objects("SELECT c.relname, tables.relname AS parent FROM tables JOIN pg_class c USING (oid)")
INVALID_INDEXES = query_our_objects(
    "SELECT c.relname FROM pg_index JOIN tables ON indrelid = tables.oid JOIN pg_class c ON c.oid = indexrelid "
    "WHERE NOT indisvalid"
)
WITH_RULES = query_our_objects("""
    SELECT c.relname FROM tables JOIN pg_class c USING (oid) WHERE relrowsecurity OR relforcerowsecurity
        OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid)
        OR EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid)
    ORDER BY c.relname
""")
OTHER_OWNERS = query_our_objects("""
    SELECT relname FROM our_schema, pg_class c WHERE relowner <> our_schema.owner
        AND c.oid IN (SELECT oid FROM tables UNION SELECT oid FROM sequences)
    UNION ALL SELECT proname FROM our_schema, functions JOIN pg_proc USING (oid) WHERE proowner <> our_schema.owner
    ORDER BY 1
""")


class IndexShape(NamedTuple):
    """What an index must have in common with the one that the migrations created."""

    columns: list[str | None]
    is_unique: bool
    is_partial: bool  # a unique index with a condition lets other rows repeat


class Trigger(NamedTuple):
    table: str
    name: str
    function: str
    kind: int
    enabled: str
    is_plain: bool  # without WHEN, columns or arguments, and not deferred


async def check_database(database: Database, now: datetime | None = None) -> None:
    """Raises `DatabaseNotReady` with the first reason not to use this database, in one sentence."""
    if database.dialect == "sqlite":
        check_local_folder(database.file.parent)
    missing = await pending_migrations(database)
    if missing:
        raise PendingMigrations(missing)
    async with database.reading() as connection:
        await check_schema(connection)
        if await partitions_ahead(connection, now or utc_now()) == 0:
            raise DatabaseNotReady("The audit has no partition for this month: run `normalcy db upgrade`.")


async def check_schema(connection: AsyncConnection) -> None:
    """Raises `DatabaseNotReady` if a setting, trigger, function or key that protects the tables is not right."""
    await connection.run_sync(_check_schema)


async def check_indexes_content(connection: AsyncConnection) -> None:
    """Raises `DatabaseNotReady` if an index of SQLite lacks rows, which whoever can write its schema can arrange: what
    is searched by that index is then not found. Reads the whole file."""
    if connection.dialect.name == "sqlite":
        problem = await connection.scalar(text("PRAGMA integrity_check(1)"))
        if problem != "ok":
            raise DatabaseNotReady(f"The SQLite file is damaged: {problem}.")


def _check_schema(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        _check_durability(connection)
    difference = next(_differences(connection), None)
    if difference:
        raise DatabaseNotReady(difference)
    _check_keys(connection)
    _check_indexes(connection)


def _check_durability(connection: Connection) -> None:
    """The audit writer checks it again while it runs. On SQLite only the writer's own connection matters."""
    try:
        check_durability_sync(connection)
    except NotDurable as error:
        raise DatabaseNotReady(error.reason) from error


def _check_keys(connection: Connection) -> None:
    """Without them two writers of one chain could both commit, an id could name two rows, an activation could have no
    record or that of another one, and requests with an Idempotency-Key would fail."""
    for table in metadata.tables.values():
        key = inspect(connection).get_pk_constraint(table.name)["constrained_columns"]
        if key != list(table.primary_key.columns.keys()):
            raise DatabaseNotReady(f"The table {table.name} has lost its primary key.")
        found = [each["column_names"] for each in inspect(connection).get_unique_constraints(table.name)]
        unique = [each for each in table.constraints if isinstance(each, UniqueConstraint)]
        if not all(each.columns.keys() in found for each in unique):
            raise DatabaseNotReady(f"The table {table.name} has lost a unique constraint.")
    foreign_keys = inspect(connection).get_foreign_keys("activations")
    if "audit_records" not in {key["referred_table"] for key in foreign_keys}:
        raise DatabaseNotReady("The table activations has lost its foreign key to audit_records.")


def _check_indexes(connection: Connection) -> None:
    """Without them every request that reads the audit, and every checkpoint, would read all records, and a patient
    could have a second data key, which an erasure leaves."""
    dialect = connection.dialect.name
    invalid = set(connection.scalars(INVALID_INDEXES)) if dialect == "postgresql" else set()
    for table in metadata.tables.values():
        found = {str(index["name"]): _found_shape(index) for index in inspect(connection).get_indexes(table.name)}
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            if index.info.get("only", dialect) != dialect:
                continue
            if found.get(str(index.name)) != _shape(index, dialect) or index.name in invalid:
                raise DatabaseNotReady(f"The index {index.name} of the table {table.name} is missing or not usable.")


def _shape(index: Index, dialect: str) -> IndexShape:
    has_condition = index.dialect_options[dialect]["where"] is not None
    return IndexShape([column.name for column in index.columns], bool(index.unique), has_condition)


def _found_shape(index: ReflectedIndex) -> IndexShape:
    has_condition = any(option.endswith("_where") for option in index.get("dialect_options", {}))
    return IndexShape(index["column_names"], bool(index["unique"]), has_condition)


def _differences(connection: Connection) -> Iterator[str]:
    """Each thing that is not as the migrations left it, in one sentence."""
    return (
        _postgres_differences(connection)
        if connection.dialect.name == "postgresql"
        else _sqlite_differences(connection)
    )


def _sqlite_differences(connection: Connection) -> Iterator[str]:
    found = {
        (table, name): _normalised(sql)
        for table, name, sql in connection.execute(  # a trigger may spell the name of its table in capitals
            text("SELECT lower(tbl_name), name, sql FROM sqlite_master WHERE type = 'trigger'")
        )
        if table in TABLES
    }
    wanted = {
        (table, f"{table}_{trigger}"): sqlite_trigger(table, trigger)
        for table in SAME_ROW
        for trigger in SQLITE_TRIGGERS
    }
    yield from _compare_triggers(wanted, found)


def sqlite_trigger(table: str, trigger: str) -> str:
    """The statement that creates it."""
    when = SQLITE_TRIGGERS[trigger].format(table=table, same=SAME_ROW[table])
    return SQLITE_TRIGGER.format(table=table, trigger=trigger, when=when)


def _postgres_differences(connection: Connection) -> Iterator[str]:
    schema = connection.scalar(OUR_SCHEMA)
    if schema is None:
        yield "The table audit_records is missing."
        return
    yield from _trigger_differences(connection)
    yield from _function_differences(connection, schema)
    for table in connection.scalars(WITH_RULES):
        yield f"The table {table} has a rule or a row security policy that the migrations did not create."
    for name in connection.scalars(OTHER_OWNERS):
        yield f"{name} does not belong to the owner of audit_records."


def _trigger_differences(connection: Connection) -> Iterator[str]:
    found = {}
    for table, name, function, is_ours, kind, enabled, is_plain, is_key in connection.execute(TRIGGERS):
        if not is_key:
            found[table, name] = Trigger(table, name, function if is_ours else "", kind, enabled, is_plain)
        elif enabled not in ("O", ALWAYS):
            yield f"A foreign key of the table {table} is disabled."
    parts = {table: table for table in SAME_ROW} | {
        part.relname: part.parent for part in connection.execute(PARTITIONS)
    }
    wanted = {
        (table, f"{parent}_{trigger}"): Trigger(table, f"{parent}_{trigger}", "refuse_change", kind, ALWAYS, True)
        for table, parent in parts.items()
        if parent in SAME_ROW
        for trigger, kind in POSTGRES_TRIGGERS.items()
    }
    yield from _compare_triggers(wanted, found)


def _compare_triggers(wanted: dict[Any, Any], found: dict[Any, Any]) -> Iterator[str]:
    for table, name in sorted(wanted.keys() - found.keys()):
        yield f"The audit is not append-only: the trigger {table}.{name} is missing."
    for table, name in sorted(found.keys() - wanted.keys()):
        yield f"The trigger {table}.{name} was not created by the migrations."
    for table, name in sorted(key for key in wanted if wanted[key] != found[key]):
        yield f"The audit is not append-only: the trigger {table}.{name} is disabled or was changed."


def _function_differences(connection: Connection, schema: str) -> Iterator[str]:
    wanted = {f.name: f._replace(body=_normalised(f.body.format(schema=schema))) for f in POSTGRES_FUNCTIONS}
    rows = [_function(*row) for row in connection.execute(FUNCTIONS)]
    for name in sorted(wanted.keys() - {function.name for function in rows}):
        yield f"The function {name} is missing."
    for function in rows:
        if function != wanted.get(function.name):
            yield f"The function {function.name} was changed, or was not created by the migrations."


def _function(*row: Any) -> Function:
    found = Function(*row)
    return found._replace(settings=tuple(found.settings), body=_normalised(found.body))


def _normalised(sql: str) -> str:
    """Without line breaks and indentation, which change nothing."""
    return " ".join(sql.split())
