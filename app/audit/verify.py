"""Is every chain what was written?

Inside a chain any change, insertion, deletion or reordering is found. A tail that was cut off, or a chain that is gone
as a whole, is found against a checkpoint only; without one, a chain without its seal is reported as open (its writer
still runs, or died) and not as damage.
"""

from collections.abc import AsyncIterable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

import msgspec

from app.audit.chain import NOTHING_BEFORE, row_hash
from app.audit.checkpoint import Checkpoint
from app.audit.records import UNREADABLE, Payload, decode
from app.database.appender import AuditRow, Head


class Damage(StrEnum):
    MUTATED = "MUTATED"  # a row is not what was hashed, or a column says other than its payload
    GAP = "GAP"  # a row is missing
    FORK = "FORK"  # a chain has two rows at one place, or rows in two months
    AFTER_SEAL = "AFTER_SEAL"  # a row was added to a closed chain
    UNKNOWN_CHAIN = "UNKNOWN_CHAIN"  # a chain that no writer opened
    TRUNCATED = "TRUNCATED"  # rows that a checkpoint covers are missing from the end, or the whole chain is
    REWRITTEN = "REWRITTEN"  # a chain is consistent and is not the one that the checkpoint covers


@dataclass(frozen=True, slots=True)
class Finding:
    """The first damage of a chain, and where."""

    damage: Damage
    month: str
    chain_id: UUID
    seq: int
    detail: str


@dataclass(frozen=True, slots=True)
class OpenChain:
    month: str
    chain_id: UUID
    seq: int  # of its last row
    at: str


@dataclass(frozen=True, slots=True)
class Verification:
    records: int
    chains: int
    open_chains: tuple[OpenChain, ...]
    findings: tuple[Finding, ...]

    @property
    def intact(self) -> bool:
        return not self.findings


async def verify(pages: AsyncIterable[list[AuditRow]], checkpoint: Checkpoint | None = None) -> Verification:
    """Of the pages of `stream_chains`. The checkpoint must not cover months that are not read."""
    ends = dict(checkpoint.ends) if checkpoint else {}
    chains: dict[UUID, _Chain] = {}
    findings: list[Finding] = []
    records = 0
    async for page in pages:
        records += len(page)
        for row in page:
            chain = chains.get(row.chain_id)
            if chain is None:
                chain = chains[row.chain_id] = _Chain(row.month, row.chain_id, ends.get(row.chain_id))
            chain.see(row)
    for chain in chains.values():
        findings += chain.closing()
    gone = [
        Finding(Damage.TRUNCATED, *end[:2], 1, "the whole chain is missing")
        for end in ends.values()
        if end.chain_id not in chains
    ]
    open_chains = tuple(chain.as_open() for chain in chains.values() if chain.last_kind != "seal")
    return Verification(records, len(chains), open_chains, (*findings, *gone))


class _Chain:
    """One chain while its rows go by. Only what the next row needs is kept, and the first damage."""

    def __init__(self, month: str, chain_id: UUID, covered: Head | None) -> None:
        self.month, self.chain_id, self.covered = month, chain_id, covered
        self.seq, self.previous, self.last_kind, self.last_at = 0, NOTHING_BEFORE, "", ""
        self.damage: Finding | None = None

    def see(self, row: AuditRow) -> None:
        if self.damage is None:
            self.damage = self._place(row) or self._content(row) or self._coverage(row)
        self.seq, self.previous, self.last_kind, self.last_at = row.seq, row.row_hash, row.kind, row.at

    def closing(self) -> list[Finding]:
        if self.damage is None and self.covered is not None and self.seq < self.covered.seq:
            self.damage = self._found(Damage.TRUNCATED, self.seq + 1, f"a checkpoint covers {self.covered.seq} rows")
        return [self.damage] if self.damage else []

    def as_open(self) -> OpenChain:
        return OpenChain(self.month, self.chain_id, self.seq, self.last_at)

    def _place(self, row: AuditRow) -> Finding | None:
        if row.month != self.month:
            return self._found(Damage.FORK, row.seq, f"rows of this chain stand in {self.month} and in {row.month}")
        if row.seq <= self.seq:
            return self._found(Damage.FORK, row.seq, "two rows have this place")
        if row.seq > self.seq + 1:
            return self._found(Damage.GAP, self.seq + 1, f"rows {self.seq + 1} to {row.seq - 1} are missing")
        if self.last_kind == "seal":
            return self._found(Damage.AFTER_SEAL, row.seq, "a row follows the seal")
        return None

    def _content(self, row: AuditRow) -> Finding | None:
        if row.row_hash != row_hash(self.previous, row.chain_id, row.seq, row.record_id, row.payload):
            return self._found(Damage.MUTATED, row.seq, "the row is not what was hashed")
        try:
            payload = decode(row.payload)
        except UNREADABLE:
            return self._found(Damage.MUTATED, row.seq, "the payload is no record of version 1")
        if row.seq == 1 and payload.kind != "genesis":
            return self._found(Damage.UNKNOWN_CHAIN, 1, "the chain does not begin with a genesis")
        wrong = _differing_columns(row, payload)
        if wrong:
            return self._found(Damage.MUTATED, row.seq, f"other than in the payload: {', '.join(wrong)}")
        return None

    def _coverage(self, row: AuditRow) -> Finding | None:
        if self.covered is None or row.seq != self.covered.seq or row.row_hash == self.covered.row_hash:
            return None
        return self._found(Damage.REWRITTEN, row.seq, "the checkpoint has another hash here")

    def _found(self, damage: Damage, seq: int, detail: str) -> Finding:
        return Finding(damage, self.month, self.chain_id, seq, detail)


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
    facts = msgspec.json.decode(payload.input)
    return str(facts.get("month")) if isinstance(facts, dict) else ""
