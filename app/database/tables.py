"""The tables, as both databases have them after the last migration.

Times are text, `2026-11-15T10:30:00.123Z`: fixed width, so that their order is the order of time, and equal byte for
byte to what the hashed payload says.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    Uuid,
    text,
)

from app.database.tolerant import TolerantBytes, TolerantPlace, TolerantText, TolerantUuid

metadata = MetaData()

# "C": plain byte order. A language's collation would be slower, and may change with the operating system.
Text = String().with_variant(String(collation="C"), "postgresql")
Counting = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER counts by itself in SQLite

# What verification compares is read even where somebody has damaged it.
RecordText = Text.with_variant(TolerantText(), "sqlite")
RecordUuid = Uuid().with_variant(TolerantUuid(), "sqlite")
RecordBytes = LargeBinary().with_variant(TolerantBytes(), "sqlite")
Place = BigInteger().with_variant(TolerantPlace(), "sqlite")

# A chain lives in one month, so the key is a fence against a second writer although PostgreSQL partitions by month.
audit_records = Table(
    "audit_records",
    metadata,
    Column("month", RecordText, primary_key=True),  # 2026-11, of the whole chain
    Column("chain_id", RecordUuid, primary_key=True),
    Column("seq", Place, primary_key=True),  # 1 is the genesis
    Column("record_id", RecordUuid, nullable=False),
    Column("request_id", RecordText),  # the caller's trace id: may repeat
    Column("item", Integer),
    Column("kind", RecordText, nullable=False),
    Column("at", RecordText, nullable=False),
    Column("principal", RecordText, nullable=False),
    Column("status", Integer),
    Column("site", RecordText),
    Column("version", RecordText),
    Column("payload", RecordBytes, nullable=False),  # the bytes that were hashed
    Column("row_hash", RecordBytes, nullable=False),
    Index("audit_records_request", "request_id"),
    Index("audit_records_time", "at", "record_id"),
    Index("audit_records_site", "site", "at", "record_id"),
    Index(
        "audit_records_chains",
        "month",
        "chain_id",
        postgresql_where=text("seq = 1"),
        sqlite_where=text("seq = 1"),
    ),
    # What a checkpoint reads. In SQLite the rows lie in the tree of the key itself, where every look drags pages along.
    Index("audit_records_ends", "month", "chain_id", "seq", "row_hash", info={"only": "sqlite"}),
    # Rows are found by their key alone in SQLite: a rowid would be a second way to replace one.
    sqlite_with_rowid=False,
    postgresql_partition_by="LIST (month)",
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", RecordText, primary_key=True),
    Column("name", RecordText, nullable=False),
    Column("secret_sha256", RecordBytes, nullable=False),
    Column("scopes", RecordText, nullable=False),  # separated by spaces
    Column("created_at", RecordText, nullable=False),
    Column("expires_at", RecordText),
    Column("revoked_at", RecordText),
)

activations = Table(
    "activations",
    metadata,
    Column("id", Counting, Identity(always=True), primary_key=True),
    Column("site", RecordText, nullable=False),
    Column("version", RecordText, nullable=False),
    Column("sha256", RecordText, nullable=False),
    Column("activated_at", RecordText, nullable=False),
    Column("activated_by", RecordText, nullable=False),
    # The place of the record that tells of it: no activation without one, and none shares another's.
    Column("month", RecordText, nullable=False),
    Column("chain_id", RecordUuid, nullable=False),
    Column("seq", Place, nullable=False),
    UniqueConstraint("month", "chain_id", "seq", name="activations_one_record"),
    ForeignKeyConstraint(
        ["month", "chain_id", "seq"],
        ["audit_records.month", "audit_records.chain_id", "audit_records.seq"],
        name="activations_record",
    ),
    Index("activations_site", "site", "id"),
)
