"""Signed checkpoints, append-only as the records are, and without a way to replace a row."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
POSTGRES_GUARDS = (
    "CREATE TRIGGER audit_checkpoints_no_change BEFORE UPDATE OR DELETE ON audit_checkpoints "
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    "CREATE TRIGGER audit_checkpoints_no_truncate BEFORE TRUNCATE ON audit_checkpoints "
    "EXECUTE FUNCTION refuse_change()",
    "ALTER TABLE audit_checkpoints ENABLE ALWAYS TRIGGER audit_checkpoints_no_change",
    "ALTER TABLE audit_checkpoints ENABLE ALWAYS TRIGGER audit_checkpoints_no_truncate",
)
SQLITE_REFUSE = "BEGIN SELECT RAISE(ABORT, 'audit_checkpoints is append-only'); END"
SQLITE_GUARDS = (
    "CREATE TRIGGER audit_checkpoints_no_update BEFORE UPDATE ON audit_checkpoints",
    "CREATE TRIGGER audit_checkpoints_no_delete BEFORE DELETE ON audit_checkpoints",
    "CREATE TRIGGER audit_checkpoints_no_replace BEFORE INSERT ON audit_checkpoints "
    "WHEN EXISTS (SELECT 1 FROM audit_checkpoints WHERE writer = NEW.writer AND number = NEW.number)",
)


def upgrade() -> None:
    op.create_table(
        "audit_checkpoints",
        sa.Column("writer", sa.Uuid, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("signature", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    postgres = op.get_bind().dialect.name == "postgresql"
    for guard in POSTGRES_GUARDS if postgres else (f"{guard} {SQLITE_REFUSE}" for guard in SQLITE_GUARDS):
        op.execute(guard)
