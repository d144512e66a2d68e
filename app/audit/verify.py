"""Verify the audit: the chains, and the tables of keys, destroyed data keys and activations against their records.

Within a chain, any change, insertion, deletion or reordering is found. A tail that was cut off, or a chain that is
missing as a whole, is found only with checkpoints; without one, a chain without its seal is reported as open (its
writer is still running, or died) and not as damage.

Every key that is created, rotated or revoked, and every activation, is recorded in the same transaction as its row. So
each row has its record, each record its row, and their columns are equal; anything else was changed by somebody else.
"""

from collections.abc import AsyncIterable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from app.audit.chain import NOTHING_BEFORE, DamageKind, check_row
from app.audit.changes import ERASED, key_columns
from app.audit.checkpoint import Checkpoint
from app.audit.records import UNREADABLE, decode
from app.audit.verify_signatures import SignatureLedger, UnsignedRows
from app.database.activations import Activation, all_activations, highest_assigned_id
from app.database.data_keys import StoredKey, erased_keys, keys_by_id
from app.database.engine import Connection
from app.database.keys import ApiKey, list_keys
from app.database.records import AuditRow, ChainHead, RecordPosition, records_of_kind
from app.database.tables import UNREADABLE_BYTES

Json = dict[str, Any]
CoveredHashes = dict[int, set[bytes]]  # what checkpoints say of a chain, by seq; two hashes at one seq contradict

KEYS, ACTIVATIONS, DATA_KEYS = "api_keys", "activations", "data_keys"
NO_BYTES = (None, UNREADABLE_BYTES)  # as PostgreSQL and as SQLite returns NULL
CREATED_STEPS = ("created", "adopted")
ACTIVATED_STEPS = ("activated", "adopted")  # records of other steps are older than the rows' references to records


class Coverage:
    """What checkpoints say, without repetition: most of a checkpoint repeats the one of the day before."""

    def __init__(self, *checkpoints: Checkpoint) -> None:
        self.hashes: dict[UUID, CoveredHashes] = {}
        self.longest: dict[UUID, ChainHead] = {}
        for checkpoint in checkpoints:
            self.add(checkpoint)

    def add(self, checkpoint: Checkpoint, since_month: str = "") -> None:
        self.add_ends(checkpoint.ends.values(), since_month)

    def add_ends(self, ends: Iterable[ChainHead], since_month: str = "") -> None:
        for end in ends:
            if end.month < since_month:
                continue
            self.hashes.setdefault(end.chain_id, {}).setdefault(end.seq, set()).add(end.row_hash)
            if end.chain_id not in self.longest or self.longest[end.chain_id].seq < end.seq:
                self.longest[end.chain_id] = end


@dataclass(frozen=True, slots=True)
class ChainFinding:
    """The first damage of a chain, and where."""

    damage: DamageKind
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
class UnsignedTail:
    """Rows after the last signature of a chain that is being written, or whose writer crashed."""

    month: str
    chain_id: UUID
    seq: int  # of the first of them
    rows: int
    since: str  # time of the oldest


@dataclass(frozen=True, slots=True)
class ChainVerification:
    records: int
    chains: int
    open_chains: tuple[OpenChain, ...]
    unsigned: tuple[UnsignedTail, ...]
    findings: tuple[ChainFinding, ...]
    retired: tuple[ChainHead, ...] = ()  # chains that are missing because their month was retired

    @property
    def intact(self) -> bool:
        return not self.findings


async def verify_chains(
    pages: AsyncIterable[list[AuditRow]], coverage: Coverage, signatures: SignatureLedger | None = None
) -> ChainVerification:
    """Of the pages of `stream_chains`. The coverage must not include months that are not read.

    Without signatures, nothing is said about rows that are not signed.
    """
    chains: dict[UUID, _Chain] = {}
    findings: list[ChainFinding] = []
    records = 0
    async for page in pages:
        records += len(page)
        for row in page:
            chain = chains.get(row.chain_id)
            if chain is None:
                covered = coverage.hashes.get(row.chain_id, {})
                chain = chains[row.chain_id] = _Chain(row.month, row.chain_id, covered, signatures)
            chain.add(row)
    for chain in chains.values():
        findings += chain.finish()
    unsigned = tuple(tail for chain in chains.values() if (tail := chain.unsigned_tail()))
    open_chains = tuple(chain.as_open() for chain in chains.values() if chain.last_kind != "seal")
    retired, missing = _missing_chains(coverage, chains, signatures.retired if signatures else {})
    return ChainVerification(records, len(chains), open_chains, unsigned, (*findings, *missing), retired)


def _missing_chains(
    coverage: Coverage, present: Mapping[UUID, object], retired: Mapping[UUID, ChainHead]
) -> tuple[tuple[ChainHead, ...], list[ChainFinding]]:
    """Those that were retired at the length that checkpoints cover, and the others."""
    missing = [end for chain_id, end in coverage.longest.items() if chain_id not in present]
    gone = tuple(end for end in missing if retired.get(end.chain_id) == end and _agrees(coverage, end))
    others = [end for end in missing if end not in gone]
    return gone, [
        ChainFinding(
            DamageKind.VANISHED, end.month, end.chain_id, 1, f"the whole chain is missing; it had {end.seq} rows"
        )
        for end in others
    ]


def _agrees(coverage: Coverage, end: ChainHead) -> bool:
    return coverage.hashes[end.chain_id][end.seq] == {end.row_hash}


class _Chain:
    """One chain while its rows are read. Holds only what the next row needs, and the first damage."""

    def __init__(self, month: str, chain_id: UUID, covered: CoveredHashes, signatures: SignatureLedger | None) -> None:
        self.month, self.chain_id, self.covered, self.signatures = month, chain_id, covered, signatures
        self.seq, self.previous, self.last_kind, self.last_at = 0, NOTHING_BEFORE, "", ""
        self.signed_seq = signatures.signed_rows(chain_id) if signatures else 0
        self.unsigned, self.oldest_unsigned, self.newest_unsigned = 0, "", ""
        self.damage: ChainFinding | None = None

    def add(self, row: AuditRow) -> None:
        if self.damage is None:
            self.damage = self._check_order(row) or self._check_content(row) or self._check_coverage(row)
        self.seq, self.previous, self.last_kind, self.last_at = row.seq, row.row_hash, row.kind, row.at
        if row.seq > self.signed_seq:
            self.unsigned += 1
            self.oldest_unsigned = min(self.oldest_unsigned or row.at, row.at)
            self.newest_unsigned = max(self.newest_unsigned, row.at)

    def finish(self) -> list[ChainFinding]:
        rows = max(self.covered, default=0)
        if self.damage is None and self.seq < rows:
            self.damage = self._found(DamageKind.TRUNCATED, self.seq + 1, f"a checkpoint covers {rows} rows")
        if self.damage is None and self.unsigned and self.signatures:
            self.damage = self._check_signatures(self.signatures)
        return [self.damage] if self.damage else []

    def unsigned_tail(self) -> UnsignedTail | None:
        if self.damage or not self.unsigned or self.signatures is None or not self.signatures.count:
            return None
        return UnsignedTail(self.month, self.chain_id, self.signed_seq + 1, self.unsigned, self.oldest_unsigned)

    def as_open(self) -> OpenChain:
        return OpenChain(self.month, self.chain_id, self.seq, self.last_at)

    def _check_order(self, row: AuditRow) -> ChainFinding | None:
        if row.month != self.month:
            return self._found(DamageKind.FORK, row.seq, f"rows of this chain are in {self.month} and in {row.month}")
        if row.seq <= self.seq:
            return self._found(DamageKind.FORK, row.seq, "two rows have this number")
        if row.seq > self.seq + 1:
            first, last = self.seq + 1, row.seq - 1
            missing = f"row {first} is missing" if first == last else f"rows {first} to {last} are missing"
            return self._found(DamageKind.GAP, first, missing)
        if self.last_kind == "seal":
            return self._found(DamageKind.AFTER_SEAL, row.seq, "a row follows the seal")
        return None

    def _check_content(self, row: AuditRow) -> ChainFinding | None:
        damage = check_row(row, self.previous)
        return self._found(damage.kind, row.seq, damage.detail) if damage else None

    def _check_coverage(self, row: AuditRow) -> ChainFinding | None:
        if self.covered.get(row.seq, {row.row_hash}) == {row.row_hash}:
            return None
        return self._found(DamageKind.REWRITTEN, row.seq, "a checkpoint has another hash for this row")

    def _check_signatures(self, signatures: SignatureLedger) -> ChainFinding | None:
        sealed = self.last_kind == "seal"
        rows = UnsignedRows(self.newest_unsigned, sealed)
        reason = signatures.damage_of(self.chain_id, rows)
        if reason is None:
            return None
        if not self.signed_seq:
            return self._found(DamageKind.UNKNOWN_CHAIN, 1, reason)
        detail = f"{self.unsigned} rows are not signed, and {reason}"
        return self._found(DamageKind.UNSIGNED, self.signed_seq + 1, detail)

    def _found(self, damage: DamageKind, seq: int, detail: str) -> ChainFinding:
        return ChainFinding(damage, self.month, self.chain_id, seq, detail)


class RowDamageKind(StrEnum):
    NO_RECORD = "NO_RECORD"  # a row without a record
    ROW_GONE = "ROW_GONE"  # a record whose row is missing
    ROW_CHANGED = "ROW_CHANGED"  # a row that differs from its record
    ROW_MOVED = "ROW_MOVED"  # activations are not in the order in which they were made
    UNREADABLE = "UNREADABLE"  # a record of a key or an activation that cannot be read


@dataclass(frozen=True, slots=True)
class RowFinding:
    damage: RowDamageKind
    table: str
    row: str  # the id of a key or of an activation; empty: the row is missing
    record_id: UUID | None  # of its record
    detail: str


class RecordedChange(NamedTuple):
    """What a record says about a row."""

    position: RecordPosition
    record_id: UUID
    model: Json
    output: Json


async def verify_tables(connection: Connection, retired: Container[UUID] = ()) -> tuple[RowFinding, ...]:
    """Compare keys, erasures and activations with their records. Whether those are genuine is for `verify_chains`.

    Records of retired chains do not count, should their month be in the database again: newer ones replace them.
    """
    key_rows = [row for row in await records_of_kind(connection, "key") if row.chain_id not in retired]
    activation_rows = [row for row in await records_of_kind(connection, "activation") if row.chain_id not in retired]
    of_keys, unreadable_keys = _recorded_changes(key_rows, KEYS)
    erasures = {str(each.output.get("data_key")): each for each in of_keys if each.output.get("step") == ERASED}
    key_changes = [each for each in of_keys if each.output.get("step") != ERASED]
    activated, unreadable_activations = _recorded_changes(activation_rows, ACTIVATIONS)
    rows = await all_activations(connection)
    return (
        *unreadable_keys,
        *unreadable_activations,
        *_compare_keys(await list_keys(connection), key_changes),
        *_compare_erasures(await _destroyed_keys(connection, erasures), erasures),
        *_compare_activations(rows, activated),
        *_not_assigned(rows, await highest_assigned_id(connection)),
    )


def _compare_keys(rows: Sequence[ApiKey], changes: Sequence[RecordedChange]) -> list[RowFinding]:
    created: dict[str, RecordedChange] = {}
    rotated: dict[str, RecordedChange] = {}
    revoked: dict[str, RecordedChange] = {}
    findings = []
    for change in changes:
        key_id, step = str(change.output.get("key_id")), change.output.get("step")
        of_step = created if step in CREATED_STEPS else rotated if step == "rotated" else revoked
        first = of_step.setdefault(key_id, change)
        if step in CREATED_STEPS and first is not change:
            found = (RowDamageKind.ROW_CHANGED, KEYS, key_id, change.record_id)
            findings.append(RowFinding(*found, "a second record says that it was created"))
    present = {row.key_id: row for row in rows}
    for key_id in sorted(present.keys() | created.keys() | rotated.keys() | revoked.keys()):
        changed = (step.get(key_id) for step in (created, rotated, revoked))
        findings += _compare_key(key_id, present.get(key_id), *changed)
    return findings


def _compare_key(
    key_id: str,
    row: ApiKey | None,
    created: RecordedChange | None,
    rotated: RecordedChange | None,
    revoked: RecordedChange | None,
) -> Iterator[RowFinding]:
    recorded = created or rotated or revoked
    if row is None and recorded is not None:
        detail = "the key has a record but is not in the table"
        yield RowFinding(RowDamageKind.ROW_GONE, KEYS, key_id, recorded.record_id, detail)
    elif row is not None and created is None:
        yield RowFinding(RowDamageKind.NO_RECORD, KEYS, key_id, None, "no record says that this key was created")
    elif row is not None and created is not None:
        later = {"expires_at": rotated, "revoked_at": revoked}
        expected = created.output | {name: each.output.get(name) for name, each in later.items() if each}
        yield from _differing(KEYS, key_id, (revoked or rotated or created).record_id, key_columns(row), expected)


async def _destroyed_keys(connection: Connection, recorded: Iterable[str]) -> list[StoredKey]:
    """Keys that were destroyed according to the table, or to a record."""
    return [*await erased_keys(connection), *await keys_by_id(connection, _uuids(recorded))]


def _uuids(texts: Iterable[str]) -> Iterator[UUID]:
    for text in texts:
        with suppress(ValueError):  # somebody else wrote it
            yield UUID(text)


def _compare_erasures(rows: Sequence[StoredKey], recorded: Mapping[str, RecordedChange]) -> Iterator[RowFinding]:
    present = {str(row.key_id): row for row in rows}
    for key_id in sorted(present.keys() | recorded.keys()):
        row, change = present.get(key_id), recorded.get(key_id)
        found = (DATA_KEYS, key_id, change.record_id if change else None)
        if row is None:
            yield RowFinding(RowDamageKind.ROW_GONE, *found, "its erasure has a record but is not in the table")
        elif change is None:
            yield RowFinding(RowDamageKind.NO_RECORD, *found, "no record says that this key was destroyed")
        elif row.erased_at is None or row.owner is not None or row.wrapped not in NO_BYTES:
            detail = "the key is there again although it was destroyed: erase the patient once more"
            yield RowFinding(RowDamageKind.ROW_CHANGED, *found, detail)


def _compare_activations(rows: Sequence[Activation], changes: Sequence[RecordedChange]) -> list[RowFinding]:
    """`rows` in the order of their ids."""
    without_row = {change.position: change for change in changes if change.output.get("step") in ACTIVATED_STEPS}
    findings: list[RowFinding] = []
    order: list[tuple[Activation, RecordedChange]] = []
    for row in rows:
        change = without_row.pop(row.position, None)
        if change is None:
            detail = "it does not refer to the record of an activation, or another row refers to the same one"
            findings.append(RowFinding(RowDamageKind.NO_RECORD, ACTIVATIONS, str(row.id), None, detail))
            continue
        order.append((row, change))
        columns = {name: getattr(row, name) for name in ("site", "version", "sha256", "activated_at", "activated_by")}
        findings += _differing(ACTIVATIONS, str(row.id), change.record_id, columns, change.model | change.output)
    for change in without_row.values():
        name = f"{change.model.get('site')} {change.model.get('version')}"
        detail = f"the activation of {name} has a record but is not in the table"
        findings.append(RowFinding(RowDamageKind.ROW_GONE, ACTIVATIONS, "", change.record_id, detail))
    return findings or list(_out_of_order(order))


def _out_of_order(order: Sequence[tuple[Activation, RecordedChange]]) -> Iterator[RowFinding]:
    before = 0
    for row, change in order:
        if change.output.get("after") != before:
            detail = "according to its record, it was made after another activation than the one before it"
            yield RowFinding(RowDamageKind.ROW_MOVED, ACTIVATIONS, str(row.id), change.record_id, detail)
        before = row.id


def _not_assigned(rows: Sequence[Activation], highest: int | None) -> Iterator[RowFinding]:
    for row in rows:
        if highest is not None and row.id > highest:
            detail = "its id is higher than any that the database has assigned: somebody chose it"
            yield RowFinding(RowDamageKind.ROW_MOVED, ACTIVATIONS, str(row.id), None, detail)


def _differing(
    table: str, row: str, record_id: UUID, columns: Mapping[str, Any], expected: Mapping[str, Any]
) -> Iterator[RowFinding]:
    """Names the columns, not their values: those are for people who may read both tables."""
    names = [name for name, value in columns.items() if value != expected.get(name)]
    if names:
        detail = f"columns differ from the record: {', '.join(names)}"
        yield RowFinding(RowDamageKind.ROW_CHANGED, table, row, record_id, detail)


def _recorded_changes(rows: Sequence[AuditRow], table: str) -> tuple[list[RecordedChange], list[RowFinding]]:
    """What the records say, and findings for those that cannot be read: `--since` may exclude their chains."""
    changes, unreadable = [], []
    for row in rows:
        change = _recorded_change(row)
        if change is None:
            detail = "its record cannot be read"
            unreadable.append(RowFinding(RowDamageKind.UNREADABLE, table, "", row.record_id, detail))
        else:
            changes.append(change)
    return changes, unreadable


def _recorded_change(row: AuditRow) -> RecordedChange | None:
    try:
        payload = decode(row.payload)
    except UNREADABLE:
        return None
    if payload.output is None and row.kind == "key":  # an activation of the first release has no output either
        return None
    model = msgspec.to_builtins(payload.model) if payload.model else {}
    return RecordedChange(row.position, row.record_id, model, payload.output or {})
