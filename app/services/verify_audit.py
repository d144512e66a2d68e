"""Verify the audit: every chain of the database, also against the checkpoints that were kept, the tables beside it, and
what guards it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit import checkpoint as checkpoints
from app.audit.checkpoint import Checkpoint, take_checkpoint
from app.audit.damage import Damage
from app.audit.tables import RowFinding, compare_tables
from app.audit.verify import Finding, OpenChain, verify
from app.clock import utc_now
from app.database.appender import AuditRow
from app.database.engine import Database
from app.database.place import record_at
from app.database.readiness import check_guards
from app.database.records import has_records, heads, stream_chains
from app.errors import DatabaseNotReady
from app.files import new_file
from app.runtime.command import inspecting
from app.services.kept_checkpoints import Choice, Compared, Kept, compared_with
from app.settings import Settings

Report = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Tampering:
    """What is wrong: which kind, and which record where there is one. A chain is named by its first damage alone."""

    damage: Damage
    detail: str
    record_id: UUID | None = None  # None: it is the one that is missing, or no single record is meant
    request_id: str | None = None
    month: str | None = None
    chain_id: UUID | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class AuditVerification:
    intact: bool
    records: int
    chains: int
    tampering: tuple[Tampering, ...]
    rows: tuple[RowFinding, ...]  # of keys and activations that are not as on record
    open_chains: tuple[OpenChain, ...]  # their writers still run, or died
    warnings: tuple[str, ...]
    checkpoints: tuple[Compared, ...]  # oldest first


async def verify_audit(
    settings: Settings, report: Report, since_month: str = "", choice: Choice = "folder"
) -> AuditVerification:
    """Raises a NormalcyError if it could not be checked."""
    async with inspecting(settings) as database:
        kept = await compared_with(database, settings.data_dir, choice, since_month)
        async with database.reading() as connection:
            found = await verify(_told(connection, since_month, report), kept.coverage)
            tampering = (
                *[await _located(connection, finding) for finding in found.findings],
                *await _emptied(connection, kept),
                *await _unguarded(database),
            )
            rows = await compare_tables(connection)
    return AuditVerification(
        not (tampering or rows),
        found.records,
        found.chains,
        tampering,
        rows,
        found.open_chains,
        kept.warnings,
        kept.checkpoints,
    )


async def write_checkpoint(settings: Settings, out: Path) -> Checkpoint:
    """Where every chain stands now, as a file to be kept outside the reach of whoever can change the database."""
    async with inspecting(settings) as database:
        with new_file(out) as file:
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
    """Of a record that is missing, the one before it is named."""
    chain = finding.month, finding.chain_id
    row = await record_at(connection, *chain, finding.seq)
    if row is not None:
        return Tampering(finding.damage, finding.detail, row.record_id, row.request_id, *chain, finding.seq)
    before = await record_at(connection, *chain, finding.seq - 1)
    detail = finding.detail + (f", after {_name(before)}" if before else "")
    return Tampering(finding.damage, detail, None, None, *chain, finding.seq)


def _name(row: AuditRow) -> str:
    return f"record {row.record_id}" + (f" of request {row.request_id}" if row.request_id else "")


async def _emptied(connection: AsyncConnection, kept: Kept) -> list[Tampering]:
    """A database that nobody used yet has no record either: only a checkpoint tells that there were some."""
    if kept.cover_records and not await has_records(connection):
        return [Tampering(Damage.EMPTIED, "there is no record at all, and checkpoints cover some")]
    return []


async def _unguarded(database: Database) -> list[Tampering]:
    async with database.reading() as connection:
        try:
            await connection.run_sync(check_guards)
        except DatabaseNotReady as missing:
            return [Tampering(Damage.UNGUARDED, str(missing).rstrip("."))]
    return []
