"""How records are chained, and whether a row is what was chained.

    row_hash = SHA-256("v1\\0" ‖ previous ‖ chain_id ‖ seq (8 bytes, big endian) ‖ record_id ‖ SHA-256(payload))

Every part has a fixed width, so no two different rows give the same bytes. The first row (seq 1, the genesis) follows
32 zero bytes and states the month of its chain. A chain belongs to one writer and to one month.

`check_row` judges a row by itself and the hash before it. A record that was changed and hashed again passes; only the
row after it, or a checkpoint, shows the change: that takes whole chains (`verify.py`).
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from app.audit.records import UNREADABLE, NewRecord, Payload, Record, decode, encode, is_exact
from app.database.records import AuditRow, ChainHead

NOTHING_BEFORE = bytes(32)
SERVICE = "service"  # the principal of records that no caller asked for


class DamageKind(StrEnum):
    MUTATED = "MUTATED"  # a row is not what was hashed, or a column differs from the payload
    GAP = "GAP"  # a row is missing
    FORK = "FORK"  # a chain has two rows with one number, or rows in two months
    AFTER_SEAL = "AFTER_SEAL"  # a row was added to a sealed chain
    UNKNOWN_CHAIN = "UNKNOWN_CHAIN"  # a chain without a genesis, or one that no writer signed
    TRUNCATED = "TRUNCATED"  # rows that a checkpoint covers are missing from the end
    VANISHED = "VANISHED"  # a whole chain that a checkpoint covers is missing
    REWRITTEN = "REWRITTEN"  # a chain is consistent, but is not the one that the checkpoint covers
    EMPTIED = "EMPTIED"  # there are no records at all, where there were some
    BAD_SIGNATURE = "BAD_SIGNATURE"  # a checkpoint is not what a trusted key signed
    CHECKPOINT_GONE = "CHECKPOINT_GONE"  # a signed checkpoint is missing
    UNSIGNED = "UNSIGNED"  # rows that the writer of their chain did not sign
    UNGUARDED = "UNGUARDED"  # a protection of the tables (append-only, durable) is missing or disabled


class RowDamage(NamedTuple):
    kind: DamageKind
    detail: str


def row_hash(previous: bytes, chain_id: UUID, seq: int, record_id: UUID, payload: bytes) -> bytes:
    content = hashlib.sha256(payload).digest()
    parts = (b"v1\0", previous, chain_id.bytes, seq.to_bytes(8, "big"), record_id.bytes, content)
    return hashlib.sha256(b"".join(parts)).digest()


def new_chain(month: str) -> ChainHead:
    return ChainHead(month, uuid4(), 0, NOTHING_BEFORE)


def link(head: ChainHead, records: Iterable[Record]) -> tuple[list[AuditRow], ChainHead]:
    """The rows that follow `head`, and the head after them."""
    month, chain_id, seq, previous = head
    rows = []
    for record in records:
        seq += 1
        previous = row_hash(previous, chain_id, seq, record.record_id, record.payload)
        rows.append(AuditRow(month, chain_id, seq, *record, previous))
    return rows, ChainHead(month, chain_id, seq, previous)


def genesis(head: ChainHead, at: datetime, facts: dict[str, Any]) -> Record:
    """The first record of a chain: who writes it (host, process, version, models, settings)."""
    return encode(NewRecord("genesis", at, SERVICE, input={**facts, "month": head.month}))


def seal(at: datetime) -> Record:
    """The last record of a chain. A chain without it belongs to a writer that is still running, or that died."""
    return encode(NewRecord("seal", at, SERVICE))


def check_row(row: AuditRow, previous: bytes | None) -> RowDamage | None:
    """What is wrong with a row. `previous`: the hash of the row before it, None if there is no such row."""
    before = NOTHING_BEFORE if row.seq == 1 else previous
    if row.seq < 1 or before is None:
        return RowDamage(DamageKind.GAP, "the row before it is missing or has no hash, so this row cannot be checked")
    if row.row_hash != row_hash(before, row.chain_id, row.seq, row.record_id, row.payload):
        return RowDamage(DamageKind.MUTATED, "the row is not what was hashed")
    try:
        payload = decode(row.payload)  # all of it: a record that cannot be decoded would break every reader
    except UNREADABLE:
        payload = None
    if payload is None or not is_exact(row.payload, payload):
        return RowDamage(DamageKind.MUTATED, "the payload is not a record of version 1")
    if row.seq == 1 and payload.kind != "genesis":
        return RowDamage(DamageKind.UNKNOWN_CHAIN, "the chain does not start with a genesis")
    different = _differing_columns(row, payload)
    return (
        RowDamage(DamageKind.MUTATED, f"columns differ from the payload: {', '.join(different)}") if different else None
    )


def _differing_columns(row: AuditRow, payload: Payload) -> list[str]:
    site, version = (payload.model.site, payload.model.version) if payload.model else (None, None)
    expected = row._replace(
        month=_expected_month(row, payload),
        record_id=payload.record_id,
        request_id=payload.request_id,
        item=payload.item,
        kind=payload.kind,
        at=payload.at,
        principal=payload.principal,
        status=payload.status,
        site=site,
        version=version,
    )
    return [] if expected == row else [n for n in row._fields if getattr(row, n) != getattr(expected, n)]


def _expected_month(row: AuditRow, payload: Payload) -> Any:
    """The genesis states the month of its chain."""
    return (payload.input or {}).get("month") if payload.kind == "genesis" else row.month
