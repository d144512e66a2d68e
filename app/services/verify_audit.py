"""Verify the audit: every chain of the database, against a checkpoint if one was kept, and the tables beside it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit import checkpoint as checkpoints
from app.audit.checkpoint import Checkpoint, take_checkpoint
from app.audit.tables import RowFinding, compare_tables
from app.audit.verify import Damage, Finding, OpenChain, verify
from app.database.appender import AuditRow
from app.database.engine import Database
from app.database.place import record_at
from app.database.readiness import check_guards
from app.database.records import heads, stream_chains
from app.database.times import utc_now
from app.errors import CheckpointRefused, DatabaseNotReady
from app.services.visit import inspecting
from app.services.whole_file import whole_file
from app.settings import Settings

Report = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Tampering:
    """The first damage of a chain: which record, which kind. No record: it is the one that is missing."""

    damage: Damage
    record_id: UUID | None
    request_id: str | None
    month: str
    chain_id: UUID
    seq: int
    detail: str


@dataclass(frozen=True, slots=True)
class AuditVerification:
    intact: bool
    records: int
    chains: int
    tampering: tuple[Tampering, ...]
    rows: tuple[RowFinding, ...]  # of keys and activations that are not as on record
    open_chains: tuple[OpenChain, ...]  # their writers still run, or died
    warnings: tuple[str, ...]
    checkpoint: str | None  # the root of the one that was compared


async def verify_audit(
    settings: Settings, report: Report, since_month: str = "", checkpoint: Path | None = None
) -> AuditVerification:
    """Raises a NormalcyError if it could not be checked."""
    kept = _read(checkpoint) if checkpoint else None
    async with inspecting(settings) as database, database.reading() as connection:
        covered = _from_month(kept, since_month) if kept else None
        found = await verify(_told(connection, since_month, report), covered)
        tampering = tuple([await _located(connection, finding) for finding in found.findings])
        rows = await compare_tables(connection)
        warnings = await _warnings(database)
    root = kept.root if kept else None
    return AuditVerification(
        found.intact and not rows, found.records, found.chains, tampering, rows, found.open_chains, warnings, root
    )  # fmt: skip


async def write_checkpoint(settings: Settings, out: Path) -> Checkpoint:
    """Where every chain stands now, as a file to be kept outside the reach of whoever can change the database."""
    async with inspecting(settings) as database:
        with whole_file(out) as file:
            async with database.reading() as connection:
                taken = await take_checkpoint(connection, utc_now())
            file.write(checkpoints.render(taken))
    return taken


async def _told(connection: AsyncConnection, since_month: str, report: Report) -> AsyncIterator[list[AuditRow]]:
    """The rows, with word of how many of them went by."""
    total = sum(head.seq for head in await heads(connection, since_month))
    seen = 0
    async for page in stream_chains(connection, since_month):
        yield page
        seen += len(page)
        report(f"{seen} records", min(1.0, seen / total) if total else 1.0)


async def _located(connection: AsyncConnection, finding: Finding) -> Tampering:
    row = await record_at(connection, finding.month, finding.chain_id, finding.seq)
    record_id, request_id = (row.record_id, row.request_id) if row else (None, None)
    return Tampering(
        finding.damage, record_id, request_id, finding.month, finding.chain_id, finding.seq, finding.detail
    )  # fmt: skip


async def _warnings(database: Database) -> tuple[str, ...]:
    """Missing guards prove no tampering, but somebody took them away."""
    async with database.reading() as connection:
        try:
            await connection.run_sync(check_guards)
        except DatabaseNotReady as missing:
            return (str(missing),)
    return ()


def _from_month(checkpoint: Checkpoint, month: str) -> Checkpoint:
    ends = {chain: end for chain, end in checkpoint.ends.items() if end.month >= month}
    return Checkpoint(checkpoint.taken_at, ends)


def _read(path: Path) -> Checkpoint:
    try:
        return checkpoints.parse(path.read_bytes())
    except OSError as error:
        raise CheckpointRefused(f"{path} cannot be read: {error.strerror}.") from error
