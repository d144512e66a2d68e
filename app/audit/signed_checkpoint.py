"""Signed checkpoints: the ends of chains, signed by the process that wrote them, each linked to the one before.

    body       JSON: who signs what, the ends of the chains with their Merkle root, the hash of the previous checkpoint
    signature  Ed25519 over "normalcy checkpoint v1\\0" ‖ body

The bytes of the body are stored as they were signed. A checkpoint is committed together with the rows that it covers:
in the transaction that opens or seals a chain, and with the first rows a minute after the last one. So every chain is
signed from its first row on, and a sealed chain to its last.

    written    ends of chains that the signer has written
    found      ends of chains that were there before anybody signed, as the first signer found them
    key        a public key that the key of this signature vouches for: the one that replaces it, or the one before it
    retired    ends of the chains of a month that was removed from the database on purpose
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID, uuid4

import msgspec

from app.audit.checkpoint import merkle_root_of
from app.audit.signing_key import SigningKey
from app.clock import parse_timestamp, timestamp
from app.database.checkpoints import CheckpointRow
from app.database.records import ChainHead
from app.errors import InvalidCheckpoint

INTERVAL = timedelta(seconds=60)
NOTHING_BEFORE = "0" * 64
StatementKind = Literal["written", "found", "key", "retired"]


class SignedEnd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    month: str
    chain_id: UUID
    seq: int
    head: str
    closed: bool  # its writer adds no row after this one

    @property
    def chain_head(self) -> ChainHead:
        return ChainHead(self.month, self.chain_id, self.seq, bytes.fromhex(self.head))


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    v: Literal[1]
    kind: StatementKind
    key_id: str
    writer: UUID
    number: int
    previous: str  # the hash of the checkpoint before it; zeros: none is known
    at: str
    database: str
    root: str
    ends: tuple[SignedEnd, ...]
    public_key: str | None  # of kind "key"


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    body: str
    signature: str


class OwnEnd(NamedTuple):
    """The end of a chain of this process, and whether the process is done with it."""

    head: ChainHead
    closed: bool = False


class Signer:
    """Signs for one writer, in order. A checkpoint that may not have been committed is never referred to.

    One that may have been committed, because its reply was lost, is followed by another one with the next rows: rows
    without a signature are judged by the times of the checkpoints that are in the database.
    """

    def __init__(self, key: SigningKey, database: str, previous: str = NOTHING_BEFORE) -> None:
        """`previous`: the hash of a checkpoint that is committed already, of whichever writer."""
        self.key, self.database, self.writer = key, database, uuid4()
        self._number, self._previous = 0, previous
        self._last: datetime | None = None  # of the newest in the database; None: there is none, or it is not known

    def for_another_writer(self) -> "Signer":
        """For a chain beside this writer's."""
        return Signer(self.key, self.database, self._previous)

    def is_due(self, now: datetime, times: Sequence[str] = ()) -> bool:
        """`times`: of the rows to be written. After a clock was set, they may be far from the last checkpoint."""
        if self._last is None or not self._last <= now < self._last + INTERVAL:
            return True
        earliest, end = timestamp(self._last - INTERVAL), timestamp(self._last + INTERVAL)
        return not all(earliest <= at < end for at in times)

    def written(self, ends: Sequence[OwnEnd], now: datetime, *committed_with: CheckpointRow) -> CheckpointRow:
        """`committed_with`: one that is committed in the same transaction."""
        previous = checkpoint_hash(committed_with[-1].body) if committed_with else self._previous
        return self._sign("written", ends, now, previous)

    def found(self, heads: Sequence[ChainHead], now: datetime) -> CheckpointRow:
        return self._sign("found", [OwnEnd(head) for head in heads], now, self._previous)

    def retired(self, heads: Sequence[ChainHead], now: datetime, committed_with: CheckpointRow) -> CheckpointRow:
        """`committed_with`: the one before it, committed in the same transaction."""
        return self._sign(
            "retired", [OwnEnd(head, closed=True) for head in heads], now, checkpoint_hash(committed_with.body)
        )

    def sign_public_key(self, public_key: bytes, now: datetime) -> CheckpointRow:
        return self._sign("key", [], now, self._previous, public_key.hex())

    def confirm(self, row: CheckpointRow) -> None:
        """It is committed: the next one refers to it."""
        self._previous = checkpoint_hash(row.body)
        self._last = parse_timestamp(read_body(row.body).at)

    def _sign(
        self, kind: StatementKind, ends: Sequence[OwnEnd], now: datetime, previous: str, public_key: str | None = None
    ) -> CheckpointRow:
        self._number += 1
        self._last = None  # until it is confirmed
        in_order = sorted(ends, key=lambda end: end.head.chain_id)
        body = Body(
            v=1,
            kind=kind,
            key_id=self.key.public.key_id,
            writer=self.writer,
            number=self._number,
            previous=previous,
            at=timestamp(now),
            database=self.database,
            root=merkle_root_of([end.head for end in in_order]),
            ends=tuple(SignedEnd(*end.head[:3], end.head.row_hash.hex(), end.closed) for end in in_order),
            public_key=public_key,
        )
        content = msgspec.json.encode(body)
        return CheckpointRow(self.writer, self._number, kind, content, self.key.sign(content))


def checkpoint_hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def read_body(body: bytes) -> Body:
    """Raises InvalidCheckpoint for bytes that are not a checkpoint, or whose root does not match their ends."""
    try:
        found = msgspec.json.decode(body, type=Body)
        root = merkle_root_of([end.chain_head for end in found.ends])
    except (ValueError, OverflowError) as error:  # from msgspec, text that is not hexadecimal, a `seq` of 64 bits
        raise InvalidCheckpoint("it is not a signed checkpoint") from error
    if found.root != root:
        raise InvalidCheckpoint("its root does not match its chains")
    return found


def render_line(row: CheckpointRow) -> bytes:
    """One line of a file of signed checkpoints."""
    return msgspec.json.encode(_Line(row.body.decode(), row.signature.hex())) + b"\n"


def is_signed_line(line: bytes) -> bool:
    """Whether it should be one, damaged or not."""
    return b'"body"' in line and b'"signature"' in line


def is_complete_line(line: bytes) -> bool:
    """Whether it holds a body and a signature, right or not. What was cut off does not."""
    try:
        _body_and_signature(line)
    except InvalidCheckpoint:
        return False
    return True


def read_line(line: bytes) -> CheckpointRow:
    """Raises InvalidCheckpoint. Whether the signature is right is for verification."""
    content, signature = _body_and_signature(line)
    body = read_body(content)
    return CheckpointRow(body.writer, body.number, body.kind, content, signature)


def _body_and_signature(line: bytes) -> tuple[bytes, bytes]:
    try:
        found = msgspec.json.decode(line, type=_Line)
        return found.body.encode(), bytes.fromhex(found.signature)
    except ValueError as error:
        raise InvalidCheckpoint("it is not a line of a file of signed checkpoints") from error
