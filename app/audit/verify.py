"""Is every chain what was written?

Inside a chain any change, insertion, deletion or reordering is found. A tail that was cut off, or a chain that is gone
as a whole, is found against checkpoints only; without one, a chain without its seal is reported as open (its writer
still runs, or died) and not as damage.
"""

from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from app.audit.chain import NOTHING_BEFORE
from app.audit.checkpoint import Checkpoint
from app.audit.damage import Damage, fault_of
from app.database.appender import AuditRow, Head

Covered = dict[int, set[bytes]]  # the hashes that checkpoints have of a chain, by place; two at one place contradict


class Coverage:
    """What checkpoints say, each thing once: most of a checkpoint repeats the one of the day before."""

    def __init__(self, *checkpoints: Checkpoint) -> None:
        self.hashes: dict[UUID, Covered] = {}
        self.longest: dict[UUID, Head] = {}
        for checkpoint in checkpoints:
            self.add(checkpoint)

    def add(self, checkpoint: Checkpoint, since_month: str = "") -> None:
        for chain_id, end in checkpoint.ends.items():
            if end.month < since_month:
                continue
            self.hashes.setdefault(chain_id, {}).setdefault(end.seq, set()).add(end.row_hash)
            if chain_id not in self.longest or self.longest[chain_id].seq < end.seq:
                self.longest[chain_id] = end


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


async def verify(pages: AsyncIterable[list[AuditRow]], coverage: Coverage) -> Verification:
    """Of the pages of `stream_chains`. The coverage must not reach into months that are not read."""
    chains: dict[UUID, _Chain] = {}
    findings: list[Finding] = []
    records = 0
    async for page in pages:
        records += len(page)
        for row in page:
            chain = chains.get(row.chain_id)
            if chain is None:
                chain = chains[row.chain_id] = _Chain(row.month, row.chain_id, coverage.hashes.get(row.chain_id, {}))
            chain.see(row)
    for chain in chains.values():
        findings += chain.closing()
    open_chains = tuple(chain.as_open() for chain in chains.values() if chain.last_kind != "seal")
    return Verification(records, len(chains), open_chains, (*findings, *_vanished(coverage, chains)))


def _vanished(coverage: Coverage, present: Mapping[UUID, object]) -> list[Finding]:
    return [
        Finding(Damage.VANISHED, end.month, chain_id, 1, f"the whole chain is missing; it had {end.seq} rows")
        for chain_id, end in coverage.longest.items()
        if chain_id not in present
    ]


class _Chain:
    """One chain while its rows go by. Only what the next row needs is kept, and the first damage."""

    def __init__(self, month: str, chain_id: UUID, covered: Covered) -> None:
        self.month, self.chain_id, self.covered = month, chain_id, covered
        self.seq, self.previous, self.last_kind, self.last_at = 0, NOTHING_BEFORE, "", ""
        self.damage: Finding | None = None

    def see(self, row: AuditRow) -> None:
        if self.damage is None:
            self.damage = self._place(row) or self._content(row) or self._coverage(row)
        self.seq, self.previous, self.last_kind, self.last_at = row.seq, row.row_hash, row.kind, row.at

    def closing(self) -> list[Finding]:
        rows = max(self.covered, default=0)
        if self.damage is None and self.seq < rows:
            self.damage = self._found(Damage.TRUNCATED, self.seq + 1, f"a checkpoint covers {rows} rows")
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
        fault = fault_of(row, self.previous)
        return self._found(fault.damage, row.seq, fault.detail) if fault else None

    def _coverage(self, row: AuditRow) -> Finding | None:
        if self.covered.get(row.seq, {row.row_hash}) == {row.row_hash}:
            return None
        return self._found(Damage.REWRITTEN, row.seq, "a checkpoint has another hash here")

    def _found(self, damage: Damage, seq: int, detail: str) -> Finding:
        return Finding(damage, self.month, self.chain_id, seq, detail)
