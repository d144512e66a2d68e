"""An index to find the last row of every chain, on SQLite.

SQLite stores the rows of this table, some kilobytes each, in the tree of the key, so that finding the end of a chain
reads many pages. PostgreSQL stores rows apart from keys and needs no second index.
"""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.create_index("audit_records_ends", "audit_records", ["month", "chain_id", "seq", "row_hash"])
