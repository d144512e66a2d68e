"""Answers that are stored for a day, for requests that are repeated with the same Idempotency-Key.

The service deletes them when they have expired, so this table is not append-only.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "idempotent_answers",
        sa.Column("key_sha256", sa.LargeBinary, primary_key=True),
        sa.Column("request_sha256", sa.LargeBinary, nullable=False),
        sa.Column("claim", sa.LargeBinary, nullable=False),
        sa.Column("expires_at", TEXT, nullable=False),
        sa.Column("answer", sa.LargeBinary),
    )
    op.create_index("idempotent_answers_expiry", "idempotent_answers", ["expires_at"])
