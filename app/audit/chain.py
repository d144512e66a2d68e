"""How records are chained.

    row_hash = SHA-256("v1\\0" ‖ previous ‖ chain_id ‖ seq (8 bytes, big endian) ‖ record_id ‖ SHA-256(payload))

Every part has a fixed width, so no two different rows give the same bytes. The genesis (seq 1) follows 32 zero bytes
and says the month of its chain. A chain belongs to one writer and to one month.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from app.audit.records import NewRecord, Record, encode
from app.database.appender import AuditRow, Head

NOTHING_BEFORE = bytes(32)
SERVICE = "service"  # the principal of what no caller asked for


def row_hash(previous: bytes, chain_id: UUID, seq: int, record_id: UUID, payload: bytes) -> bytes:
    content = hashlib.sha256(payload).digest()
    parts = (b"v1\0", previous, chain_id.bytes, seq.to_bytes(8, "big"), record_id.bytes, content)
    return hashlib.sha256(b"".join(parts)).digest()


def new_chain(month: str) -> Head:
    return Head(month, uuid4(), 0, NOTHING_BEFORE)


def link(head: Head, records: Iterable[Record]) -> tuple[list[AuditRow], Head]:
    """The rows that follow `head`, and the head after them."""
    month, chain_id, seq, previous = head
    rows = []
    for record in records:
        seq += 1
        previous = row_hash(previous, chain_id, seq, record.record_id, record.payload)
        rows.append(AuditRow(month, chain_id, seq, *record, previous))
    return rows, Head(month, chain_id, seq, previous)


def genesis(head: Head, at: datetime, facts: dict[str, Any]) -> Record:
    """Opens a chain: who writes it (host, process, version, models, settings)."""
    return encode(NewRecord("genesis", at, SERVICE, input={**facts, "month": head.month}))


def seal(at: datetime) -> Record:
    """Closes a chain. One without it belongs to a writer that still runs, or that died."""
    return encode(NewRecord("seal", at, SERVICE))
