"""Verify the audit: every chain, against the stored checkpoints too, the tables of keys and activations, the guards.

By default the checkpoints in the data folder are used. A data folder may have served several databases: a checkpoint
of another one is skipped with a warning. Checkpoints of the first release name no database and always count, because
after everything was deleted they may be the only evidence.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from uuid import UUID

from app.audit import checkpoint as checkpoints
from app.audit.chain import DamageKind
from app.audit.checkpoint import Checkpoint, take_checkpoint
from app.audit.verify import ChainFinding, Coverage, OpenChain, RowFinding, verify_chains, verify_tables
from app.clock import utc_now
from app.database.engine import Connection, Database
from app.database.records import (
    AuditRow,
    RecordPosition,
    chain_heads,
    database_name,
    has_records,
    record_at,
    stream_chains,
)
from app.database.schema_checks import check_schema
from app.errors import DatabaseNotReady, InvalidCheckpoint
from app.files import new_file
from app.runtime.checkpoints import FOLDER, checkpoint_files
from app.runtime.command import existing_database
from app.settings import Settings

Report = Callable[[str, float], None]
CheckpointChoice = Path | Literal["folder", "none"]


@dataclass(frozen=True, slots=True)
class Tampering:
    """One thing that is wrong. Of a chain only the first damage is reported."""

    damage: DamageKind
    detail: str
    record_id: UUID | None = None  # None: the record is the one that is missing, or there is no single record
    request_id: str | None = None
    month: str | None = None
    chain_id: UUID | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class ComparedCheckpoint:
    file: str
    taken_at: str
    root: str


@dataclass(frozen=True, slots=True)
class AuditVerification:
    intact: bool
    records: int
    chains: int
    tampering: tuple[Tampering, ...]
    rows: tuple[RowFinding, ...]  # keys and activations that differ from their records
    open_chains: tuple[OpenChain, ...]  # their writers are still running, or crashed
    warnings: tuple[str, ...]
    checkpoints: tuple[ComparedCheckpoint, ...]  # oldest first


async def verify_audit(
    settings: Settings, report: Report, since_month: str = "", choice: CheckpointChoice = "folder"
) -> AuditVerification:
    """Raises a NormalcyError if the audit could not be checked."""
    async with existing_database(settings) as database:
        stored = await read_checkpoints(database, settings.data_dir, choice, since_month)
        async with database.reading() as connection:
            result = await verify_chains(_rows(connection, since_month, report), stored.coverage)
            tampering = (
                *[await _locate(connection, finding) for finding in result.findings],
                *await _check_not_emptied(connection, stored),
                *await _check_guards(database),
            )
            rows = await verify_tables(connection)
    return AuditVerification(
        not (tampering or rows),
        result.records,
        result.chains,
        tampering,
        rows,
        result.open_chains,
        stored.warnings,
        stored.compared,
    )


async def write_checkpoint(settings: Settings, out: Path) -> Checkpoint:
    """Write the current end of every chain to a file, to be stored out of reach of whoever can change the database."""
    async with existing_database(settings) as database:
        with new_file(out) as file:
            async with database.reading() as connection:
                taken = await take_checkpoint(connection, utc_now())
            file.write(checkpoints.render(taken))
    return taken


@dataclass(frozen=True, slots=True)
class StoredCheckpoints:
    coverage: Coverage  # of the months that are verified
    compared: tuple[ComparedCheckpoint, ...]  # oldest first
    cover_records: bool  # of any month
    warnings: tuple[str, ...]


async def read_checkpoints(
    database: Database, data_dir: Path, choice: CheckpointChoice, since_month: str = ""
) -> StoredCheckpoints:
    """Read before the chains, which can then only be longer; one file at a time, because there may be many.

    Raises InvalidCheckpoint for a damaged file.
    """
    folder, by_name = data_dir / FOLDER, isinstance(choice, Path)
    files = [choice] if isinstance(choice, Path) else checkpoint_files(folder) if choice == "folder" else []
    async with database.reading() as connection:
        accepted = ("", await database_name(connection))
    coverage, compared, cover_records = Coverage(), [], False
    for file in files:
        checkpoint = _read_checkpoint(file)
        if by_name or checkpoint.database in accepted:
            coverage.add(checkpoint, since_month)
            compared.append(ComparedCheckpoint(str(file), checkpoint.taken_at, checkpoint.root))
            cover_records |= bool(checkpoint.ends)
    skipped = len(files) - len(compared)
    warning = f"{skipped} of {len(files)} checkpoints in {folder} are of another database and were not compared."
    by_time = tuple(sorted(compared, key=lambda each: each.taken_at))
    return StoredCheckpoints(coverage, by_time, cover_records, (warning,) if skipped else ())


def _read_checkpoint(path: Path) -> Checkpoint:
    try:
        return checkpoints.parse(path.read_bytes())
    except OSError as error:
        raise InvalidCheckpoint(f"{path} cannot be read: {error.strerror}.") from error
    except InvalidCheckpoint as error:
        raise InvalidCheckpoint(f"{path}: {error}") from error


async def _rows(connection: Connection, since_month: str, report: Report) -> AsyncIterator[list[AuditRow]]:
    """All rows in pages, reporting progress."""
    total = sum(head.seq for head in await chain_heads(connection, since_month))
    seen = 0
    async for page in stream_chains(connection, since_month):
        yield page
        seen += len(page)
        report(f"{seen} records", min(1.0, seen / total) if total else 1.0)


async def _locate(connection: Connection, finding: ChainFinding) -> Tampering:
    """Names the damaged record; if it is missing, the one before it."""
    chain = finding.month, finding.chain_id
    row = await record_at(connection, RecordPosition(*chain, finding.seq))
    if row is not None:
        return Tampering(finding.damage, finding.detail, row.record_id, row.request_id, *chain, finding.seq)
    before = await record_at(connection, RecordPosition(*chain, finding.seq - 1))
    detail = finding.detail + (f", after {_name(before)}" if before else "")
    return Tampering(finding.damage, detail, None, None, *chain, finding.seq)


def _name(row: AuditRow) -> str:
    return f"record {row.record_id}" + (f" of request {row.request_id}" if row.request_id else "")


async def _check_not_emptied(connection: Connection, stored: StoredCheckpoints) -> list[Tampering]:
    """A new database has no records either; only a checkpoint shows that there were some."""
    if stored.cover_records and not await has_records(connection):
        return [Tampering(DamageKind.EMPTIED, "there is no record at all, and checkpoints cover some")]
    return []


async def _check_guards(database: Database) -> list[Tampering]:
    async with database.reading() as connection:
        try:
            await check_schema(connection)
        except DatabaseNotReady as error:
            return [Tampering(DamageKind.UNGUARDED, str(error).rstrip("."))]
    return []
