"""Only the database assigns the ids of activations.

With INSERT on the whole table the service's login could choose an id above all that will ever be assigned, and its
activation would stay current for ever. The upgrade grants the other columns, one by one. SQLite has no logins.
"""

from alembic import op

revision = "0006"
down_revision = "0005"

REVOKE = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'normalcy_writer') THEN
        REVOKE INSERT ON activations FROM normalcy_writer;
    END IF;
END $$
"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(REVOKE)
