"""What can be wrong with the audit, and what is wrong with one record, judged by its own row and the hash before it.

A record that was changed and hashed anew fits its own row. Only the row after it, or a checkpoint, tells: that is for
`verify.py`, which reads whole chains.
"""

from enum import StrEnum
from typing import NamedTuple

from app.audit.chain import NOTHING_BEFORE, row_hash
from app.audit.records import UNREADABLE, Payload, decode
from app.database.appender import AuditRow


class Damage(StrEnum):
    MUTATED = "MUTATED"  # a row is not what was hashed, or a column says other than its payload
    GAP = "GAP"  # a row is missing
    FORK = "FORK"  # a chain has two rows at one place, or rows in two months
    AFTER_SEAL = "AFTER_SEAL"  # a row was added to a closed chain
    UNKNOWN_CHAIN = "UNKNOWN_CHAIN"  # a chain that no writer opened
    TRUNCATED = "TRUNCATED"  # rows that a checkpoint covers are missing from the end
    VANISHED = "VANISHED"  # a whole chain that a checkpoint covers is missing
    REWRITTEN = "REWRITTEN"  # a chain is consistent and is not the one that the checkpoint covers
    EMPTIED = "EMPTIED"  # there is no record at all, where there were some
    UNGUARDED = "UNGUARDED"  # what keeps the tables append-only, or durable, is missing or switched off


class FieldError(NamedTuple):
    damage: Damage
    detail: str


def fault_of(row: AuditRow, previous: bytes | None) -> FieldError | None:
    """`previous`: the hash of the row before, None where there is no such row."""
    before = NOTHING_BEFORE if row.seq == 1 else previous
    if row.seq < 1 or before is None:
        return FieldError(Damage.GAP, "the row before it is missing or has no hash, so that this one cannot be checked")
    if row.row_hash != row_hash(before, row.chain_id, row.seq, row.record_id, row.payload):
        return FieldError(Damage.MUTATED, "the row is not what was hashed")
    try:
        payload = decode(row.payload)  # all of it: a record that cannot be read whole would stop whoever shows it
    except UNREADABLE:
        return FieldError(Damage.MUTATED, "the payload is no record of version 1")
    if row.seq == 1 and payload.kind != "genesis":
        return FieldError(Damage.UNKNOWN_CHAIN, "the chain does not begin with a genesis")
    wrong = _differing_columns(row, payload)
    return FieldError(Damage.MUTATED, f"other than in the payload: {', '.join(wrong)}") if wrong else None


def _differing_columns(row: AuditRow, payload: Payload) -> list[str]:
    site, version = (payload.model.site, payload.model.version) if payload.model else (None, None)
    said = row._replace(
        month=_month_said(row, payload),
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
    return [] if said == row else [n for n in row._fields if getattr(row, n) != getattr(said, n)]


def _month_said(row: AuditRow, payload: Payload) -> str:
    """The genesis says the month of its chain."""
    if payload.kind != "genesis":
        return row.month
    return str((payload.input or {}).get("month"))
