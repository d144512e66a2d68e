"""An index by site: without it, listing a site that is seldom scored reads the whole audit."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_index("audit_records_site", "audit_records", ["site", "at", "record_id"])
