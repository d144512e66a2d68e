"""When a key was last used, and which key replaces which.

The service writes the time of the last use, so it has a table of its own: on PostgreSQL the service may only read
`api_keys`. It is not part of the audit.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("replaces", TEXT))
    op.create_table(
        "key_uses",
        sa.Column("key_id", TEXT, primary_key=True),
        sa.Column("last_used_at", TEXT, nullable=False),
    )
