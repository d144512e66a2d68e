"""Verify signed checkpoints, those of the database and those of files, and judge rows that nobody signed.

A checkpoint counts if a trusted key signed it: one that was given, or one that a trusted key vouches for (kind `key`).
Anybody who may add rows can add one that names another key, so such a checkpoint excuses nothing. Each refers to the
checkpoint before it, so one that was removed is missed by the next; those at the end are missed only by the copies in
files.

Every chain is signed together with its first row, with its seal, and with rows a minute after the last signature. So
a chain without a signature was added by somebody else, and rows after the last signature are at most a minute younger
than it: the end of a chain whose writer still runs, or crashed.

Only chains of before the first signature have none of their writer, up to the row where the first signer found them.
Whoever can remove its checkpoint of kind `found` makes a later process sign another one, of everything that is there
by then. So if there are several, a row counts as found if all of them have it.

A chain that a trusted key signed as retired may be missing, if no checkpoint covers more of it than its retired end.

The order of a writer's checkpoints is that of their numbers: clocks are set back.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from app.audit.chain import DamageKind
from app.audit.signed_checkpoint import INTERVAL, NOTHING_BEFORE, Body, SignedEnd, checkpoint_hash, read_body
from app.audit.signing_key import PublicKey
from app.clock import parse_timestamp, timestamp
from app.database.checkpoints import CheckpointRow, stream_checkpoints
from app.database.engine import Connection
from app.database.records import ChainHead
from app.errors import InvalidCheckpoint

IN_DATABASE = "the database"
HOW_TO_TRUST = (
    "If it is a key of yours, give its public key with --public-key, or in the file of NORMALCY_AUDIT_PUBLIC_KEYS_FILE"
)
HOW_TO_ADOPT = (
    "If it is older than the first signed checkpoint, `normalcy db upgrade` with the signing key and a login that may "
    "read records signs what is there"
)


class CheckpointFinding(NamedTuple):
    """What is wrong with a signed checkpoint, and where it is."""

    damage: DamageKind
    where: str
    detail: str


class SignedUntil(NamedTuple):
    """The last row of a chain that its writer signed."""

    seq: int
    number: int  # of the checkpoint
    at: str  # when it was signed
    writer: UUID
    closed: bool  # by this checkpoint or by another one


class UnsignedRows(NamedTuple):
    """The rows of a chain after the last signature, as they were read."""

    newest: str  # their latest time
    sealed: bool


@dataclass(slots=True)
class SignatureLedger:
    """What trusted keys have signed, and what is wrong with checkpoints. Add every checkpoint, then call `finish`."""

    trusted: dict[str, PublicKey]
    must_be_signed: bool = False  # that nothing is signed by these keys is a finding
    chains: dict[UUID, SignedUntil] = field(default_factory=dict)
    found: dict[UUID, int] | None = None  # chains of before the first signature, with their last row of that time
    retired: dict[UUID, ChainHead] = field(default_factory=dict)  # chains of months that were removed on purpose
    has_signed_ends: bool = False  # of any month
    of_unknown_keys: Counter[tuple[str, str]] = field(default_factory=Counter)  # checkpoints, by source and key
    findings: list[CheckpointFinding] = field(default_factory=list)
    _accepted: set[str] = field(default_factory=set)  # hashes of what trusted keys signed, without any finding
    _latest: dict[UUID, tuple[int, str]] = field(default_factory=dict)  # by writer: number and time of its last one
    _hashes: dict[str, set[str]] = field(default_factory=dict)  # by source, whoever signed
    _previous: dict[str, str] = field(default_factory=dict)  # what must exist, and who refers to it

    @property
    def count(self) -> int:
        """How many checkpoints trusted keys signed, each counted once, wherever it was read."""
        return len(self._accepted)

    def trust_signed_keys(self, rows: Iterable[CheckpointRow]) -> None:
        """Keys that trusted keys vouch for, in whichever order."""
        vouching = [row for row in rows if row.kind == "key"]
        while True:
            new = [body.public_key for row in vouching if (body := self._valid(row)) and body.public_key]
            keys = {key.key_id: key for key in (PublicKey(bytes.fromhex(raw)) for raw in new)}
            if keys.keys() <= self.trusted.keys():
                return
            self.trusted |= keys

    def add(self, row: CheckpointRow, source: str = IN_DATABASE) -> Body | None:
        """What it says, if a trusted key signed it."""
        where = f"checkpoint {row.number} of writer {row.writer} in {source}"
        try:
            body = read_body(row.body)
        except InvalidCheckpoint as error:
            self._found(where, str(error))
            return None
        digest = checkpoint_hash(row.body)
        self._hashes.setdefault(source, set()).add(digest)
        if (row.writer, row.number, row.kind) != (body.writer, body.number, body.kind):
            self._found(where, "its columns differ from what was signed")
        elif body.key_id not in self.trusted:
            self.of_unknown_keys[source, body.key_id] += 1
        elif not self.trusted[body.key_id].has_signed(row.body, row.signature):
            self._found(where, "its signature is wrong")
        else:
            self._accepted.add(digest)
            self._record(body, where)
            return body
        return None

    def finish(self) -> None:
        for (source, key_id), count in self.of_unknown_keys.items():
            checkpoints = f"{count} checkpoints name" if count > 1 else "a checkpoint names"
            self._found(source, f"{checkpoints} the key {key_id}, which is not trusted. {HOW_TO_TRUST}")
        known = set().union(*self._hashes.values())
        for previous, where in self._previous.items():
            if previous not in known:
                self.findings.append(
                    CheckpointFinding(DamageKind.CHECKPOINT_GONE, where, "the one before it is missing")
                )
        for source, hashes in self._hashes.items():
            missing = len(hashes - self._hashes.get(IN_DATABASE, set()))
            if missing:
                detail = f"the database lacks {missing} of its checkpoints"
                self.findings.append(CheckpointFinding(DamageKind.CHECKPOINT_GONE, source, detail))
        if self.must_be_signed and not self.count:
            detail = "no checkpoint is signed by a key that was given"
            self.findings.append(CheckpointFinding(DamageKind.UNSIGNED, IN_DATABASE, detail))

    def signed_rows(self, chain_id: UUID) -> int:
        """The number of the last row that the chain's writer signed or, if it signed none, the first signer found."""
        signed = self.chains.get(chain_id)
        return signed.seq if signed else (self.found or {}).get(chain_id, 0)

    def damage_of(self, chain_id: UUID, rows: UnsignedRows) -> str | None:
        """Why rows without a signature are a finding. None: they are the end of a chain that was being written."""
        signed = self.chains.get(chain_id)
        if signed is None:
            return self._damage_of_unknown(chain_id)
        if signed.closed:
            return "its writer had closed the chain"
        if rows.sealed:
            return "the chain is sealed, and its writer signs what it seals"
        if rows.newest > timestamp(parse_timestamp(signed.at) + 2 * INTERVAL):
            return f"its writer last signed it at {signed.at}"
        _, latest = self._latest[signed.writer]
        if rows.newest < timestamp(parse_timestamp(latest) - 2 * INTERVAL):
            return f"its writer signed again at {latest}, without them"
        return None

    def _damage_of_unknown(self, chain_id: UUID) -> str | None:
        """Whatever times its rows have: whoever forges a chain chooses them."""
        if not self.count:
            return None
        if self.signed_rows(chain_id):
            return "the chain was there before the first signature: its writer added none afterwards"
        return "no writer has signed this chain" + (f". {HOW_TO_ADOPT}" if self.found is None else "")

    def _record(self, body: Body, where: str) -> None:
        mine = (body.number, body.at)
        self._latest[body.writer] = max(self._latest.get(body.writer, mine), mine)
        self.has_signed_ends |= bool(body.ends)
        if body.previous != NOTHING_BEFORE:
            self._previous.setdefault(body.previous, where)
        if body.kind == "found":
            ends = {end.chain_id: end.seq for end in body.ends}
            before = ends if self.found is None else self.found
            self.found = {chain_id: min(seq, before[chain_id]) for chain_id, seq in ends.items() if chain_id in before}
        elif body.kind == "retired":
            self.retired.update((end.chain_id, end.chain_head) for end in body.ends)
        else:
            for end in body.ends:
                self._extend(end, body)

    def _extend(self, end: SignedEnd, body: Body) -> None:
        mine = SignedUntil(end.seq, body.number, body.at, body.writer, end.closed)
        before = self.chains.get(end.chain_id, mine)
        last = max(before, mine, key=lambda each: (each.seq, each.number))
        self.chains[end.chain_id] = last._replace(closed=before.closed or mine.closed)

    def _valid(self, row: CheckpointRow) -> Body | None:
        try:
            body = read_body(row.body)
        except InvalidCheckpoint:
            return None
        key = self.trusted.get(body.key_id)
        return body if key and key.has_signed(row.body, row.signature) else None

    def _found(self, where: str, detail: str) -> None:
        self.findings.append(CheckpointFinding(DamageKind.BAD_SIGNATURE, where, detail))


async def retired_ends(connection: Connection, keys: Iterable[PublicKey]) -> dict[UUID, ChainHead]:
    """The ends of the chains that these keys, and those that they vouch for, signed as retired."""
    ledger = SignatureLedger(by_id(keys))
    ledger.trust_signed_keys([row async for row in stream_checkpoints(connection, "key")])
    async for row in stream_checkpoints(connection, "retired"):
        ledger.add(row)
    return ledger.retired


def by_id(keys: Iterable[PublicKey]) -> dict[str, PublicKey]:
    return {key.key_id: key for key in keys}
