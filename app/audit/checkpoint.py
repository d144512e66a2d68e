"""A checkpoint: the last row of every chain at one moment, to be stored outside the database.

A chain proves that nothing inside it was changed. That its end, or the whole chain, is still there can only be proved
with something that whoever can change the database cannot change as well. The root is the RFC 6962 Merkle tree hash of
the chains' ends: 32 bytes that can be printed, sent or notarised, and that determine every line of the file.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Literal
from uuid import UUID

import msgspec

from app.clock import timestamp
from app.database.engine import Connection
from app.database.records import ChainHead, chain_heads, database_name
from app.errors import InvalidCheckpoint


@dataclass(frozen=True)
class Checkpoint:
    taken_at: str
    ends: Mapping[UUID, ChainHead]  # by chain
    database: str = ""  # of which database; empty: written before checkpoints named it
    retired: Mapping[UUID, ChainHead] = field(default_factory=dict)  # removed on purpose; not part of the file

    @cached_property
    def root(self) -> str:
        return merkle_root_of([end for _, end in sorted(self.ends.items())])


class _Header(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    v: Literal[1]
    taken_at: str
    chains: int
    root: str
    database: str = ""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    month: str
    chain_id: UUID
    seq: int
    head: str


async def take_checkpoint(connection: Connection, now: datetime, since_month: str = "") -> Checkpoint:
    heads = await chain_heads(connection, since_month)
    return Checkpoint(timestamp(now), {head.chain_id: head for head in heads}, await database_name(connection))


def lost_ends(before: Checkpoint, now: Checkpoint) -> dict[UUID, ChainHead]:
    """Ends of chains that were there before and no longer are. Chains only grow, so somebody removed them.

    Those of months that were retired do not count.
    """
    return {
        chain_id: end
        for chain_id, end in before.ends.items()
        if (then := now.ends.get(chain_id)) is None
        or then.seq < end.seq
        or (then.seq == end.seq and then.row_hash != end.row_hash)
        if now.retired.get(chain_id) != end
    }


def with_lost_ends(taken: Checkpoint, *before: Checkpoint | None) -> Checkpoint:
    """The checkpoint, with the ends that earlier ones have and that it lacks."""
    for one in filter(None, before):
        taken = replace(taken, ends={**taken.ends, **lost_ends(one, taken)})
    return taken


def render(checkpoint: Checkpoint) -> bytes:
    """JSON lines: a header with the root, then one line per chain."""
    first = _Header(1, checkpoint.taken_at, len(checkpoint.ends), checkpoint.root, checkpoint.database)
    ends = (end for _, end in sorted(checkpoint.ends.items()))
    lines = [_Line(end.month, end.chain_id, end.seq, end.row_hash.hex()) for end in ends]
    return msgspec.json.Encoder().encode_lines([first, *lines])


def parse(content: bytes) -> Checkpoint:
    """Raises InvalidCheckpoint if the file was truncated or edited, or is something else."""
    first, *lines = content.splitlines() or [b""]
    try:
        header = msgspec.json.decode(first, type=_Header)
        ends = [_end(msgspec.json.decode(line, type=_Line)) for line in lines]
    except ValueError as error:  # from msgspec, or text that is not hexadecimal
        raise InvalidCheckpoint("The file is not a checkpoint.") from error
    checkpoint = Checkpoint(header.taken_at, {end.chain_id: end for end in ends}, header.database)
    if (header.chains, header.root) != (len(lines), checkpoint.root):
        raise InvalidCheckpoint("The checkpoint does not match its own root: it was truncated or edited.")
    return checkpoint


def merkle_root_of(ends: Sequence[ChainHead]) -> str:
    return merkle_root([_leaf(end) for end in ends]).hex()


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962: leaves and nodes hashed under different prefixes, the left half the largest power of two."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + merkle_root(leaves[:split]) + merkle_root(leaves[split:])).digest()


def _leaf(end: ChainHead) -> bytes:
    return end.chain_id.bytes + end.seq.to_bytes(8, "big", signed=True) + end.row_hash + end.month.encode()


def _end(line: _Line) -> ChainHead:
    return ChainHead(line.month, line.chain_id, line.seq, bytes.fromhex(line.head))
