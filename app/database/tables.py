"""The tables, as both databases have them after the last migration.

Times are text, `2026-11-15T10:30:00.123Z`: fixed width, so that text order is time order, and equal byte for byte to
the time in the hashed payload.

SQLite stores a text in a column of bytes, or of numbers, if somebody puts one there. Reading such a row must not fail:
verification has to report it as damaged. The lenient column types below therefore read a value of the wrong type as
one that this program never writes.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Dialect,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.types import TypeEngine

from app.database.stored_payload import deflate, inflate

metadata = MetaData()

UNREADABLE_UUID = UUID(int=0)
UNREADABLE_NUMBER = -1
UNREADABLE_BYTES = b"\0not bytes"


def decode_leniently(content: bytes) -> str:
    """For SQLite's driver, which would refuse to return a text that is not UTF-8."""
    return content.decode("utf-8", "backslashreplace")


class LenientText(String):
    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return lambda value: value if value is None or isinstance(value, str) else repr(value)


class LenientBytes(LargeBinary):
    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return lambda value: value if isinstance(value, bytes) else UNREADABLE_BYTES


class LenientNumber(BigInteger):
    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return lambda value: value if isinstance(value, int) else UNREADABLE_NUMBER


class LenientUuid(Uuid[UUID]):
    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return _uuid


def _uuid(value: Any) -> UUID:
    """Only the spelling that we write: another spelling of the same number is another key to SQLite."""
    try:
        found = UUID(value)
    except (ValueError, TypeError, AttributeError):
        return UNREADABLE_UUID
    return found if found.hex == value else UNREADABLE_UUID


# "C": plain byte order. A language's collation would be slower, and may change with the operating system.
_text = String().with_variant(String(collation="C"), "postgresql")
TextColumn = _text.with_variant(LenientText(), "sqlite")
UuidColumn = Uuid().with_variant(LenientUuid(), "sqlite")
BytesColumn = LargeBinary().with_variant(LenientBytes(), "sqlite")
NumberColumn = BigInteger().with_variant(LenientNumber(), "sqlite")


class PayloadColumn(TypeDecorator[bytes]):
    """A payload, deflated in the database."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(LenientBytes() if dialect.name == "sqlite" else LargeBinary())

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        return value if value is None else deflate(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        return value if value is None else inflate(value)


IdColumn = BigInteger().with_variant(Integer(), "sqlite")  # SQLite numbers rows by itself only if they are INTEGER

# A chain lives in one month. So the primary key stops a second writer of a chain, although PostgreSQL partitions by
# month.
audit_records = Table(
    "audit_records",
    metadata,
    Column("month", TextColumn, primary_key=True),  # 2026-11, of the whole chain
    Column("chain_id", UuidColumn, primary_key=True),
    Column("seq", NumberColumn, primary_key=True),  # 1 is the genesis
    Column("record_id", UuidColumn, nullable=False),
    Column("request_id", TextColumn),  # the caller's trace id: may repeat
    Column("item", Integer),
    Column("kind", TextColumn, nullable=False),
    Column("at", TextColumn, nullable=False),
    Column("principal", TextColumn, nullable=False),
    Column("status", Integer),
    Column("site", TextColumn),
    Column("version", TextColumn),
    Column("payload", PayloadColumn, nullable=False),  # the bytes that were hashed
    Column("row_hash", BytesColumn, nullable=False),
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
    # For checkpoints. SQLite stores whole rows in the tree of the key, where each look-up would read many pages.
    Index("audit_records_ends", "month", "chain_id", "seq", "row_hash", info={"only": "sqlite"}),
    # In SQLite rows are addressed by their key only: a rowid would be a second way to replace one.
    sqlite_with_rowid=False,
    postgresql_partition_by="LIST (month)",
)

# The ends of chains, signed by the process that wrote them.
audit_checkpoints = Table(
    "audit_checkpoints",
    metadata,
    Column("writer", UuidColumn, primary_key=True),
    Column("number", NumberColumn, primary_key=True),
    Column("kind", TextColumn, nullable=False),
    Column("body", BytesColumn, nullable=False),  # the bytes that were signed
    Column("signature", BytesColumn, nullable=False),
    sqlite_with_rowid=False,
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", TextColumn, primary_key=True),
    Column("name", TextColumn, nullable=False),
    Column("secret_sha256", BytesColumn, nullable=False),
    Column("scopes", TextColumn, nullable=False),  # separated by spaces
    Column("created_at", TextColumn, nullable=False),
    Column("expires_at", TextColumn),
    Column("revoked_at", TextColumn),
    Column("replaces", TextColumn),  # the id of the key before it, if it was rotated
)

# Written by the service at most once a minute and key. Not part of the audit.
key_uses = Table(
    "key_uses",
    metadata,
    Column("key_id", TextColumn, primary_key=True),
    Column("last_used_at", TextColumn, nullable=False),
)

activations = Table(
    "activations",
    metadata,
    Column("id", IdColumn, Identity(always=True), primary_key=True),
    Column("site", TextColumn, nullable=False),
    Column("version", TextColumn, nullable=False),
    Column("sha256", TextColumn, nullable=False),
    Column("activated_at", TextColumn, nullable=False),
    Column("activated_by", TextColumn, nullable=False),
    # The position of its record: no activation without a record, and no record shared by two.
    Column("month", TextColumn, nullable=False),
    Column("chain_id", UuidColumn, nullable=False),
    Column("seq", NumberColumn, nullable=False),
    UniqueConstraint("month", "chain_id", "seq", name="activations_one_record"),
    ForeignKeyConstraint(
        ["month", "chain_id", "seq"],
        ["audit_records.month", "audit_records.chain_id", "audit_records.seq"],
        name="activations_record",
    ),
    Index("activations_site", "site", "id"),
)

# Wrapped under a key that is not in the database; see `data_keys.py`.
data_keys = Table(
    "data_keys",
    metadata,
    Column("key_id", UuidColumn, primary_key=True),
    Column("owner", TextColumn),  # a keyed hash of a patient reference, or a month; NULL: erased
    Column("wrapped", BytesColumn),
    Column("erased_at", TextColumn),
    Index("data_keys_owner", "owner", unique=True),
    Index(
        "data_keys_erased",
        "erased_at",
        postgresql_where=text("erased_at IS NOT NULL"),
        sqlite_where=text("erased_at IS NOT NULL"),
    ),
)

idempotent_answers = Table(
    "idempotent_answers",
    metadata,
    Column("key_sha256", BytesColumn, primary_key=True),  # keyed, of the caller and the key
    Column("request_sha256", BytesColumn, nullable=False),  # keyed as well
    Column("claim", BytesColumn, nullable=False),  # who may store the answer
    Column("expires_at", TextColumn, nullable=False),  # of the claim; once it is answered, of the answer
    Column("answer", LargeBinary),
    Index("idempotent_answers_expiry", "expires_at"),
)
