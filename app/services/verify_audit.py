"""Verify the audit: every chain, against signed and stored checkpoints too, the tables of keys and activations, the
guards. Signatures are checked with the public keys that the auditor gives, or else with those that this installation
trusts: its own and those of the setting.

While the service runs it verifies from time to time, records that it did, and reports the outcome to readiness and the
metrics. That happens in a process of its own, because hashing every record would delay responses: run as a program,
this module is that process, and reads the settings from its standard input.
"""

import asyncio
import os
import pickle
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import msgspec
import structlog

from app.audit import checkpoint as checkpoints
from app.audit.chain import SERVICE, DamageKind
from app.audit.checkpoint import Checkpoint, take_checkpoint
from app.audit.records import NewRecord
from app.audit.signed_checkpoint import Body
from app.audit.signing_key import PublicKey, trusted_keys
from app.audit.verify import ChainFinding, OpenChain, RowFinding, UnsignedTail, verify_chains, verify_tables
from app.audit.verify_signatures import SignatureLedger, by_id
from app.clock import utc_now
from app.database.checkpoints import may_read_audit, stream_checkpoints
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
from app.database.retirement import keep_months
from app.database.schema_checks import check_indexes_content, check_schema
from app.errors import CouldNotCheck, DatabaseNotReady
from app.files import new_file
from app.observability import describe_failure
from app.runtime.command import existing_database
from app.runtime.runtime import Runtime, VerificationOutcome
from app.services.stored_checkpoints import CheckpointChoice, ComparedCheckpoint, StoredCheckpoints, read_checkpoints
from app.settings import Settings

Report = Callable[[str, float], None]
FIRST_AFTER_SECONDS = 600.0  # services that are restarted every day verify too
ROUTE = "scheduled verification"
COMMAND = (sys.executable, "-m", "app.services.verify_audit")
NICENESS = 10  # responses come first
NO_KEY = (
    "The audit has signed checkpoints, and there is no key here to check them with: give the public key with "
    "--public-key, or in the file of NORMALCY_AUDIT_PUBLIC_KEYS_FILE. --no-checkpoint verifies without signatures."
)


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
class AuditVerification:
    intact: bool
    records: int
    chains: int
    tampering: tuple[Tampering, ...]
    rows: tuple[RowFinding, ...]  # keys and activations that differ from their records
    open_chains: tuple[OpenChain, ...]  # their writers are still running, or crashed
    unsigned: tuple[UnsignedTail, ...]  # rows at their ends that are not signed yet
    retired: dict[str, int]  # by month, how many chains were removed from the database on purpose
    warnings: tuple[str, ...]
    checkpoints: tuple[ComparedCheckpoint, ...]  # without signatures, oldest first
    signed_checkpoints: int  # whose signature is right


async def verify_audit(
    settings: Settings,
    report: Report,
    since_month: str = "",
    choice: CheckpointChoice = "folder",
    public_keys: Sequence[PublicKey] = (),
) -> AuditVerification:
    """Raises a NormalcyError if the audit could not be checked."""
    async with existing_database(settings) as database:
        return await verify_database(database, settings, report, since_month, choice, public_keys)


async def verify_database(
    database: Database,
    settings: Settings,
    report: Report,
    since_month: str = "",
    choice: CheckpointChoice = "folder",
    public_keys: Sequence[PublicKey] = (),
) -> AuditVerification:
    async with database.reading() as connection:
        name = await database_name(connection)
    stored = read_checkpoints(name, settings.data_dir, choice, since_month, only_signed=bool(public_keys))
    keys = public_keys or trusted_keys(settings)
    signatures = SignatureLedger(by_id(keys), must_be_signed=bool(public_keys))
    async with database.reading() as connection:
        await keep_months(connection)
        of_checkpoints = []
        if choice != "none":
            of_checkpoints = await _read_signatures(connection, stored, signatures, since_month)
        result = await verify_chains(_rows(connection, since_month, report), stored.coverage, signatures)
        tampering = (
            *of_checkpoints,
            *[await _locate(connection, finding) for finding in result.findings],
            *await _check_not_emptied(connection, stored.cover_records or signatures.has_signed_ends),
            *await _check_guards(database),
        )
        rows = await verify_tables(connection, signatures.retired)
    return AuditVerification(
        not (tampering or rows),
        result.records,
        result.chains,
        tampering,
        rows,
        result.open_chains,
        result.unsigned,
        dict(sorted(Counter(end.month for end in result.retired).items())),
        stored.warnings,
        stored.compared,
        signatures.count,
    )


async def write_checkpoint(settings: Settings, out: Path) -> Checkpoint:
    """Write the current end of every chain to a file, to be stored out of reach of whoever can change the database."""
    async with existing_database(settings) as database:
        with new_file(out) as file:
            async with database.reading() as connection:
                taken = await take_checkpoint(connection, utc_now())
            file.write(checkpoints.render(taken))
    return taken


async def _read_signatures(
    connection: Connection, stored: StoredCheckpoints, signatures: SignatureLedger, since_month: str
) -> list[Tampering]:
    """What trusted keys signed becomes part of the coverage."""
    rows = [row for _, row in stored.signed]
    signatures.trust_signed_keys([*rows, *[row async for row in stream_checkpoints(connection, "key")]])
    for file, row in stored.signed:
        _cover(stored, signatures.add(row, file), since_month)
    async for row in stream_checkpoints(connection):
        _cover(stored, signatures.add(row), since_month)
    if signatures.of_unknown_keys and not signatures.trusted:
        raise CouldNotCheck(NO_KEY)
    signatures.finish()
    return [Tampering(each.damage, f"{each.where}: {each.detail}") for each in (*stored.findings, *signatures.findings)]


def _cover(stored: StoredCheckpoints, body: Body | None, since_month: str) -> None:
    if body is not None:
        stored.coverage.add_ends([end.chain_head for end in body.ends], since_month)


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
    # Whatever number a damaged row holds, this does not overflow.
    before = await record_at(connection, RecordPosition(*chain, finding.seq - 1)) if finding.seq > 1 else None
    detail = finding.detail + (f", after {_name(before)}" if before else "")
    return Tampering(finding.damage, detail, None, None, *chain, finding.seq)


def _name(row: AuditRow) -> str:
    return f"record {row.record_id}" + (f" of request {row.request_id}" if row.request_id else "")


async def _check_not_emptied(connection: Connection, had_records: bool) -> list[Tampering]:
    """A new database has no records either; only a checkpoint shows that there were some."""
    if had_records and not await has_records(connection):
        return [Tampering(DamageKind.EMPTIED, "there is no record at all, and checkpoints cover some")]
    return []


async def _check_guards(database: Database) -> list[Tampering]:
    async with database.reading() as connection:
        try:
            await check_schema(connection)
            await check_indexes_content(connection)
        except DatabaseNotReady as error:
            return [Tampering(DamageKind.UNGUARDED, str(error).rstrip("."))]
    return []


class Summary(msgspec.Struct):
    intact: bool
    records: int
    kinds: list[str]


async def verify_regularly(runtime: Runtime) -> None:
    hours = runtime.settings.audit_verify_hours
    if hours == 0:
        runtime.verification.outcome = "off"
        return
    await asyncio.sleep(min(FIRST_AFTER_SECONDS, hours * 3600))
    while True:
        await verify_once(runtime)
        await asyncio.sleep(hours * 3600)


async def verify_once(runtime: Runtime) -> None:
    """Never raises, because no response depends on it."""
    state, log = runtime.verification, structlog.get_logger("audit")
    outcome: VerificationOutcome = "failed"
    try:
        found = await _verify(runtime)
        if found is None:
            outcome = "not_permitted"
        elif found.intact:
            await _record(runtime, found)
            outcome, state.last_intact = "intact", runtime.clock().timestamp()
        else:
            outcome = state.outcome = "tampered"  # before it is recorded: whoever tampers may also prevent that
            log.error("audit tampered with")
            await _record(runtime, found)
    except Exception as error:  # noqa: BLE001 - whatever fails, readiness says that it failed
        log.error("audit not verified", **describe_failure(error))
    state.outcome = outcome


async def _verify(runtime: Runtime) -> Summary | None:
    """None: this login may not read records."""
    async with runtime.database.reading() as connection:
        if not await may_read_audit(connection):
            return None
    return await _in_another_process(runtime.settings)


async def _record(runtime: Runtime, found: Summary) -> None:
    output = {"records": found.records, "intact": found.intact, "kinds": found.kinds}
    await runtime.writer.write([NewRecord("read", runtime.clock(), SERVICE, route=ROUTE, output=output)])


async def _in_another_process(settings: Settings) -> Summary:
    process = await asyncio.create_subprocess_exec(*COMMAND, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    try:
        answer, _ = await process.communicate(pickle.dumps(settings))
    finally:
        if process.returncode is None:  # the service stops
            with suppress(ProcessLookupError):
                process.kill()
    if process.returncode:
        raise CouldNotCheck("The process that verifies the audit failed.")
    return msgspec.json.decode(answer, type=Summary)


def main() -> None:
    os.nice(NICENESS)
    settings = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the service that started this process
    found = asyncio.run(verify_audit(settings, lambda *_: None))
    kinds = {*(str(each.damage) for each in found.tampering), *(str(each.damage) for each in found.rows)}
    sys.stdout.buffer.write(msgspec.json.encode(Summary(found.intact, found.records, sorted(kinds))))


if __name__ == "__main__":
    main()
