"""The audit, the API keys and the activations.

Append-only by triggers: PostgreSQL refuses UPDATE, DELETE and TRUNCATE, also in replication sessions (ENABLE ALWAYS);
SQLite refuses UPDATE, DELETE, and INSERT OR REPLACE, which would fire neither of their triggers.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
COUNTING = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

REFUSE_CHANGE = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$
"""
# The writer's role may not read records; this function gives it the last row of its own chain.
AUDIT_HEAD = """
CREATE FUNCTION audit_head(of_month text, of_chain uuid) RETURNS TABLE (seq bigint, row_hash bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT r.seq, r.row_hash FROM audit_records r
    WHERE r.month = of_month AND r.chain_id = of_chain ORDER BY r.seq DESC LIMIT 1
$$
"""
POSTGRES_GUARDS = (
    "CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    "CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION refuse_change()",
    "ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_change",
    "ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_truncate",
)
SQLITE_REFUSE = "BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
SQLITE_GUARDS = (
    "CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refuse}",
    "CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}",
    "CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "
    "WHEN EXISTS (SELECT 1 FROM {table} WHERE {same}) {refuse}",
)
SAME_KEY = {
    "audit_records": "month = NEW.month AND chain_id = NEW.chain_id AND seq = NEW.seq",
    "activations": "id = NEW.id",
}


def upgrade() -> None:
    _create_tables()
    postgres = op.get_bind().dialect.name == "postgresql"
    if postgres:
        op.execute(REFUSE_CHANGE)
        op.execute(AUDIT_HEAD)
        op.execute("REVOKE EXECUTE ON FUNCTION audit_head(text, uuid) FROM PUBLIC")
    for table, same in SAME_KEY.items():
        for guard in POSTGRES_GUARDS if postgres else SQLITE_GUARDS:
            op.execute(guard.format(table=table, same=same, refuse=SQLITE_REFUSE.format(table=table)))


def _create_tables() -> None:
    op.create_table(
        "audit_records",
        sa.Column("month", TEXT, primary_key=True),
        sa.Column("chain_id", sa.Uuid, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("record_id", sa.Uuid, nullable=False),
        sa.Column("request_id", TEXT),
        sa.Column("item", sa.Integer),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("at", TEXT, nullable=False),
        sa.Column("principal", TEXT, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("site", TEXT),
        sa.Column("version", TEXT),
        sa.Column("payload", sa.LargeBinary, nullable=False),
        sa.Column("row_hash", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
        postgresql_partition_by="LIST (month)",
    )
    first_rows = sa.text("seq = 1")
    op.create_index("audit_records_request", "audit_records", ["request_id"])
    op.create_index("audit_records_time", "audit_records", ["at", "record_id"])
    op.create_index(
        "audit_records_chains",
        "audit_records",
        ["month", "chain_id"],
        postgresql_where=first_rows,
        sqlite_where=first_rows,
    )
    op.create_table(
        "api_keys",
        sa.Column("key_id", TEXT, primary_key=True),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary, nullable=False),
        sa.Column("scopes", TEXT, nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("expires_at", TEXT),
        sa.Column("revoked_at", TEXT),
    )
    op.create_table(
        "activations",
        sa.Column("id", COUNTING, sa.Identity(always=True), primary_key=True),
        sa.Column("site", TEXT, nullable=False),
        sa.Column("version", TEXT, nullable=False),
        sa.Column("sha256", TEXT, nullable=False),
        sa.Column("activated_at", TEXT, nullable=False),
        sa.Column("activated_by", TEXT, nullable=False),
    )
    op.create_index("activations_site", "activations", ["site", "id"])
