"""A checkpoint: where every chain stood at one moment, to be kept outside the database.

A chain proves its own inside. That its end, or all of it, is still there can only be proved against something that
whoever can change the database cannot change as well. The root is the RFC 6962 Merkle tree hash of the chains' ends:
32 bytes that can be printed, sent or notarised, and that fix every line of the file.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Literal
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from app.clock import timestamp
from app.database.appender import Head
from app.database.records import database_name, heads
from app.errors import InvalidCheckpoint


@dataclass(frozen=True)
class Checkpoint:
    taken_at: str
    ends: Mapping[UUID, Head]  # by chain
    database: str = ""  # whose ends they are; empty: written before checkpoints said so

    @cached_property
    def root(self) -> str:
        return merkle_root([_leaf(end) for _, end in sorted(self.ends.items())]).hex()


class _First(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
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


async def take_checkpoint(connection: AsyncConnection, now: datetime, since_month: str = "") -> Checkpoint:
    found = await heads(connection, since_month)
    return Checkpoint(timestamp(now), {head.chain_id: head for head in found}, await database_name(connection))


def forgotten(before: Checkpoint, now: Checkpoint) -> dict[UUID, Head]:
    """The ends that the chains had and, contrary to all that is done to chains, have no more."""
    return {
        chain_id: end
        for chain_id, end in before.ends.items()
        if (then := now.ends.get(chain_id)) is None
        or then.seq < end.seq
        or (then.seq == end.seq and then.row_hash != end.row_hash)
    }


def remembering(taken: Checkpoint, *before: Checkpoint | None) -> Checkpoint:
    """With the ends that were seen before and that it lacks."""
    for one in filter(None, before):
        taken = replace(taken, ends={**taken.ends, **forgotten(one, taken)})
    return taken


def render(checkpoint: Checkpoint) -> bytes:
    """JSON lines: what it is and its root, then one line per chain."""
    first = _First(1, checkpoint.taken_at, len(checkpoint.ends), checkpoint.root, checkpoint.database)
    ends = (end for _, end in sorted(checkpoint.ends.items()))
    lines = [_Line(end.month, end.chain_id, end.seq, end.row_hash.hex()) for end in ends]
    return msgspec.json.Encoder().encode_lines([first, *lines])


def parse(content: bytes) -> Checkpoint:
    """Raises InvalidCheckpoint if the file was cut, edited or is something else."""
    first, *lines = content.splitlines() or [b""]
    try:
        header = msgspec.json.decode(first, type=_First)
        ends = [_end(msgspec.json.decode(line, type=_Line)) for line in lines]
    except ValueError as error:  # of msgspec, and of text that is not hexadecimal
        raise InvalidCheckpoint("The file is not a checkpoint.") from error
    checkpoint = Checkpoint(header.taken_at, {end.chain_id: end for end in ends}, header.database)
    if (header.chains, header.root) != (len(lines), checkpoint.root):
        raise InvalidCheckpoint("The checkpoint is not what its own root says: it was cut or edited.")
    return checkpoint


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962: leaves and nodes hashed under different prefixes, the left half the largest power of two."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + merkle_root(leaves[:split]) + merkle_root(leaves[split:])).digest()


def _leaf(end: Head) -> bytes:
    return end.chain_id.bytes + end.seq.to_bytes(8, "big", signed=True) + end.row_hash + end.month.encode()


def _end(line: _Line) -> Head:
    return Head(line.month, line.chain_id, line.seq, bytes.fromhex(line.head))
