"""Are functions and triggers still those that the migrations made?

What the migrations did not make is refused as well: one more trigger or rule can drop what is added, a policy of row
security can hide what is read, and a function of the owner that runs with its rights lends them to its callers.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.database.catalogue import HOME, TABLES, about_ours
from app.database.definitions import (
    ALWAYS,
    POSTGRES_FUNCTIONS,
    POSTGRES_TRIGGERS,
    SAME_KEY,
    SQLITE_TRIGGER,
    SQLITE_TRIGGERS,
    Function,
)
from app.errors import DatabaseNotReady


class Trigger(NamedTuple):
    table: str
    name: str
    function: str
    kind: int
    enabled: str
    is_plain: bool  # neither WHEN nor columns nor arguments, and not deferred


FUNCTIONS = about_ours("""
    SELECT proname || '(' || oidvectortypes(proargtypes) || ')', pg_get_function_result(p.oid), lanname,
        provolatile::text, prosecdef, coalesce(proconfig, '{}'), prosrc
    FROM home, pg_proc p JOIN pg_language l ON l.oid = prolang
    WHERE p.oid IN (SELECT oid FROM functions)
        OR prosecdef AND proowner = home.owner AND pronamespace <> 'pg_catalog'::regnamespace
            AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e')
""")
TRIGGERS = about_ours("""
    SELECT c.relname, tgname, proname, pronamespace = home.oid, tgtype, tgenabled::text,
        tgqual IS NULL AND tgnargs = 0 AND tgattr = ''::int2vector AND NOT tgdeferrable,
        pronamespace = 'pg_catalog'::regnamespace AND proname LIKE 'RI\\_FKey\\_%'
    FROM home, pg_trigger JOIN tables ON tables.oid = tgrelid JOIN pg_class c ON c.oid = tgrelid
        JOIN pg_proc p ON p.oid = tgfoid
""")
PARTS = about_ours("SELECT c.relname, tables.relname AS parent FROM tables JOIN pg_class c USING (oid)")
RULES = about_ours("""
    SELECT c.relname FROM tables JOIN pg_class c USING (oid) WHERE relrowsecurity OR relforcerowsecurity
        OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid)
        OR EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid)
    ORDER BY c.relname
""")
OTHER_OWNERS = about_ours("""
    SELECT relname FROM home, pg_class c WHERE relowner <> home.owner
        AND c.oid IN (SELECT oid FROM tables UNION SELECT oid FROM sequences)
    UNION ALL SELECT proname FROM home, functions JOIN pg_proc USING (oid) WHERE proowner <> home.owner
    ORDER BY 1
""")


def check_definitions(connection: Connection) -> None:
    """Raises DatabaseNotReady with the first thing that is not as the migrations made it."""
    wrong = next(differences(connection), None)
    if wrong:
        raise DatabaseNotReady(wrong)


def differences(connection: Connection) -> Iterator[str]:
    """Each thing that is not as the migrations made it, in one sentence."""
    return _postgres(connection) if connection.dialect.name == "postgresql" else _sqlite(connection)


def _sqlite(connection: Connection) -> Iterator[str]:
    found = {
        (table, name): _words(sql)
        for table, name, sql in connection.execute(
            text("SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger'")
        )
        if table in TABLES
    }
    wanted = {
        (table, f"{table}_{guard}"): SQLITE_TRIGGER.format(
            table=table, guard=guard, when=when.format(table=table, same=same)
        )
        for table, same in SAME_KEY.items()
        for guard, when in SQLITE_TRIGGERS.items()
    }
    yield from _compared(wanted, found)


def _postgres(connection: Connection) -> Iterator[str]:
    home = connection.scalar(HOME)
    if home is None:
        yield "The table audit_records is missing."
        return
    yield from _triggers(connection)
    yield from _functions(connection, home)
    for table in connection.scalars(RULES):
        yield f"The table {table} has a rule or a policy of row security, which the migrations did not make."
    for name in connection.scalars(OTHER_OWNERS):
        yield f"{name} does not belong to the owner of audit_records."


def _triggers(connection: Connection) -> Iterator[str]:
    found = {}
    for table, name, function, is_ours, kind, enabled, is_plain, is_key in connection.execute(TRIGGERS):
        if not is_key:
            found[table, name] = Trigger(table, name, function if is_ours else "", kind, enabled, is_plain)
        elif enabled not in ("O", ALWAYS):
            yield f"A foreign key of the table {table} is switched off."
    parts = {table: table for table in SAME_KEY} | {part.relname: part.parent for part in connection.execute(PARTS)}
    wanted = {
        (table, f"{parent}_{guard}"): Trigger(table, f"{parent}_{guard}", "refuse_change", kind, ALWAYS, True)
        for table, parent in parts.items()
        if parent in SAME_KEY
        for guard, kind in POSTGRES_TRIGGERS.items()
    }
    yield from _compared(wanted, found)


def _compared(wanted: dict[Any, Any], found: dict[Any, Any]) -> Iterator[str]:
    for table, name in sorted(wanted.keys() - found.keys()):
        yield f"The audit is not append-only: {table}.{name} is missing."
    for table, name in sorted(found.keys() - wanted.keys()):
        yield f"The trigger {table}.{name} was not made by the migrations."
    for table, name in sorted(key for key in wanted if wanted[key] != found[key]):
        yield f"The audit is not append-only: {table}.{name} is disabled, or not the one that the migrations made."


def _functions(connection: Connection, home: str) -> Iterator[str]:
    wanted = {f.name: f._replace(body=_words(f.body.format(home=home))) for f in POSTGRES_FUNCTIONS}
    rows = [_function(*row) for row in connection.execute(FUNCTIONS)]
    for name in sorted(wanted.keys() - {function.name for function in rows}):
        yield f"The function {name} is missing."
    for function in rows:
        if function != wanted.get(function.name):
            yield f"The function {function.name} is not one that the migrations made."


def _function(*row: Any) -> Function:
    found = Function(*row)
    return found._replace(settings=tuple(found.settings), body=_words(found.body))


def _words(sql: str) -> str:
    """Line ends and indentation mean nothing."""
    return " ".join(sql.split())
