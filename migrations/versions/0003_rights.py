"""Functions that a caller cannot misuse to act as their owner.

`audit_head` runs with the rights of the owner. Its tables were resolved with the caller's search path, where temporary
objects come first: a temporary view named audit_records ran the caller's code as the owner. Now its body names our
schema, and its search path contains nothing that a caller can write to. SQLite has neither functions nor logins.
"""

from alembic import op

revision = "0003"
down_revision = "0002"

HOME = """
SELECT quote_ident(nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass('audit_records')
"""
STATEMENTS = (
    """
CREATE OR REPLACE FUNCTION {home}.audit_head(of_month text, of_chain uuid) RETURNS TABLE (seq bigint, row_hash bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.seq, r.row_hash FROM {home}.audit_records r
    WHERE r.month = of_month AND r.chain_id = of_chain ORDER BY r.seq DESC LIMIT 1
$$
""",
    """
CREATE OR REPLACE FUNCTION {home}.refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$
""",
    "REVOKE ALL ON FUNCTION {home}.audit_head(text, uuid), {home}.refuse_change() FROM PUBLIC",
)


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        return
    home = connection.exec_driver_sql(HOME).scalar_one()
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement.format(home=home))
