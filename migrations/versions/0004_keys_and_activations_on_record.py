"""Records for keys and activations: an activation refers to its record, and existing rows get one.

The record of an existing row is marked `adopted`: from now on, whatever differs from its record was changed by somebody
else. How a record is written and chained never changes, so this uses the program's own functions.
"""

import sqlalchemy as sa
from alembic import op

from app.audit.chain import SERVICE
from app.audit.changes import activation_change, key_change, short_chain
from app.audit.records import NewRecord
from app.clock import utc_now
from app.database.keys import ApiKey
from app.database.migrate import create_partitions
from app.database.records import AuditRow
from app.domain.card import ModelRef

revision = "0004"
down_revision = "0003"

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
COUNTING = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
POSITION = ["month", "chain_id", "seq"]
RECORDS = sa.table(
    "audit_records",
    *(sa.column(name, sa.Uuid() if name in ("chain_id", "record_id") else None) for name in AuditRow._fields),
)
KEYS = "SELECT key_id, name, secret_sha256, scopes, created_at, expires_at, revoked_at FROM api_keys ORDER BY key_id"
ACTIVATIONS = "SELECT id, site, version, sha256, activated_at, activated_by FROM activations ORDER BY id"

# The triggers of 0001, for the table that SQLite creates again. Its second key is a second way to replace a row.
SQLITE_REFUSE = "BEGIN SELECT RAISE(ABORT, 'activations is append-only'); END"
SQLITE_TRIGGERS = (
    "CREATE TRIGGER activations_no_update BEFORE UPDATE ON activations",
    "CREATE TRIGGER activations_no_delete BEFORE DELETE ON activations",
    "CREATE TRIGGER activations_no_replace BEFORE INSERT ON activations "
    "WHEN EXISTS (SELECT 1 FROM activations WHERE id = NEW.id"
    " OR (month = NEW.month AND chain_id = NEW.chain_id AND seq = NEW.seq))",
)


def upgrade() -> None:
    connection = op.get_bind()
    postgres = connection.dialect.name == "postgresql"
    if postgres:
        op.execute("LOCK TABLE api_keys, activations IN SHARE ROW EXCLUSIVE MODE")  # no row is added meanwhile
    keys = [tuple(row) for row in connection.execute(sa.text(KEYS))]
    activations = [tuple(row) for row in connection.execute(sa.text(ACTIVATIONS))]
    records = _adopt(connection, keys, activations)
    if postgres:
        _add_references(connection, records)
    else:
        _create_again(connection, activations, records)


def _adopt(
    connection: sa.Connection, keys: list[tuple[object, ...]], activations: list[tuple[object, ...]]
) -> dict[int, AuditRow]:
    """One chain for all. Returns the records of the activations, by id."""
    if not keys and not activations:
        return {}
    now = utc_now()
    new_records = [NewRecord("key", now, SERVICE, output=key_change("adopted", _key(*row))) for row in keys]
    after = 0
    for number, site, version, sha256, at, by in activations:
        output = activation_change("adopted", at, by, after)
        new_records.append(NewRecord("activation", now, SERVICE, model=ModelRef(site, version, sha256), output=output))
        after = number
    rows = short_chain(new_records, {"command": "db upgrade", "revision": revision}, now)
    if connection.dialect.name == "postgresql":
        create_partitions(connection, now)
    connection.execute(sa.insert(RECORDS).inline(), [row._asdict() for row in rows])
    return {row[0]: rows[index] for index, row in enumerate(activations, start=1 + len(keys))}


def _key(key_id: str, name: str, secret: bytes, scopes: str, *times: str | None) -> ApiKey:
    return ApiKey(key_id, name, bytes(secret), frozenset(scopes.split()), *times)


def _add_references(connection: sa.Connection, records: dict[int, AuditRow]) -> None:
    for name, kind in (("month", TEXT), ("chain_id", sa.Uuid()), ("seq", sa.BigInteger())):
        op.add_column("activations", sa.Column(name, kind))
    op.execute("ALTER TABLE activations DISABLE TRIGGER activations_no_change")
    refer = sa.text("UPDATE activations SET month = :month, chain_id = :chain_id, seq = :seq WHERE id = :id")
    for number, record in records.items():
        connection.execute(refer, {"id": number, **{name: getattr(record, name) for name in POSITION}})
    op.execute("ALTER TABLE activations ENABLE ALWAYS TRIGGER activations_no_change")
    for name in POSITION:
        op.alter_column("activations", name, nullable=False)
    op.create_unique_constraint("activations_one_record", "activations", POSITION)
    op.create_foreign_key("activations_record", "activations", "audit_records", POSITION, POSITION)


def _create_again(
    connection: sa.Connection, activations: list[tuple[object, ...]], records: dict[int, AuditRow]
) -> None:
    """SQLite cannot add a foreign key of several columns to an existing table."""
    op.rename_table("activations", "activations_before")
    created = op.create_table(
        "activations",
        sa.Column("id", COUNTING, sa.Identity(always=True), primary_key=True),
        sa.Column("site", TEXT, nullable=False),
        sa.Column("version", TEXT, nullable=False),
        sa.Column("sha256", TEXT, nullable=False),
        sa.Column("activated_at", TEXT, nullable=False),
        sa.Column("activated_by", TEXT, nullable=False),
        sa.Column("month", TEXT, nullable=False),
        sa.Column("chain_id", sa.Uuid, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.UniqueConstraint(*POSITION, name="activations_one_record"),
        sa.ForeignKeyConstraint(POSITION, [f"audit_records.{name}" for name in POSITION], name="activations_record"),
    )
    for row in activations:
        connection.execute(sa.insert(created).values((*row, *records[row[0]][:3])))
    op.drop_table("activations_before")
    op.create_index("activations_site", "activations", ["site", "id"])
    for trigger in SQLITE_TRIGGERS:
        op.execute(f"{trigger} {SQLITE_REFUSE}")
