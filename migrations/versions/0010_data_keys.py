"""Keys that encrypt records, one for each patient: destroying one erases what was recorded about that patient."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
ERASED = sa.text("erased_at IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "data_keys",
        sa.Column("key_id", sa.Uuid, primary_key=True),
        sa.Column("owner", TEXT),
        sa.Column("wrapped", sa.LargeBinary),
        sa.Column("erased_at", TEXT),
    )
    op.create_index("data_keys_owner", "data_keys", ["owner"], unique=True)
    op.create_index("data_keys_erased", "data_keys", ["erased_at"], postgresql_where=ERASED, sqlite_where=ERASED)
