"""Where every chain ends, without reading the chains: a narrow index on SQLite.

The rows of its table lie in the tree of the key itself, some kilobytes each, so that a look at the end of a chain reads
many pages. PostgreSQL keeps rows apart from its keys and needs no second index.
"""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.create_index("audit_records_ends", "audit_records", ["month", "chain_id", "seq", "row_hash"])
