"""Queries about our own tables and functions in PostgreSQL's catalogue, in whichever schema they live."""

from sqlalchemy import TextClause, text

from app.database.definitions import POSTGRES_FUNCTIONS
from app.database.tables import metadata

TABLES = (*metadata.tables, "alembic_version")
FUNCTIONS = tuple(function.name.partition("(")[0] for function in POSTGRES_FUNCTIONS)

# Views are all through which our tables are reached, tables with rules too: they lend the rights of their owner.
# Tables come with their partitions, and with the name of the table that they are a part of.
OURS = """
    WITH RECURSIVE home AS (
        SELECT n.oid, quote_ident(nspname) AS name, relowner AS owner
        FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = to_regclass('audit_records')
    ), tables AS (
        SELECT c.oid, c.relname FROM pg_class c JOIN home ON relnamespace = home.oid WHERE relname = ANY(:tables)
        UNION SELECT inhrelid, tables.relname FROM pg_inherits JOIN tables ON inhparent = tables.oid
    ), sequences AS (
        SELECT c.oid FROM pg_class c JOIN pg_depend d ON d.objid = c.oid AND classid = 'pg_class'::regclass
        WHERE relkind = 'S' AND refobjid IN (SELECT oid FROM tables)
    ), functions AS (
        SELECT p.oid FROM pg_proc p JOIN home ON pronamespace = home.oid WHERE proname = ANY(:functions)
    ), reached AS (
        SELECT oid FROM tables
        UNION SELECT ev_class FROM reached
            JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = reached.oid
            JOIN pg_rewrite r ON classid = 'pg_rewrite'::regclass AND objid = r.oid
    ), views AS (
        SELECT oid, oid::regclass::text AS name FROM reached WHERE oid NOT IN (SELECT oid FROM tables)
    )
"""


def about_ours(select: str) -> TextClause:
    """`select` reads from home, tables, sequences, functions and views."""
    return text(OURS + select).bindparams(tables=list(TABLES), functions=list(FUNCTIONS))


HOME = about_ours("SELECT name FROM home")
