"""Read the audit, for the API and for commands, and erase a patient from it.

Reading is itself recorded, and nothing is shown before that. A patient is erased by destroying the data key that
encrypts what was recorded about them; that is recorded too.
"""

import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

from app.audit import changes
from app.audit.encryption import DataKeys, open_data_keys, owner_of
from app.audit.lookup import MAX_PAGE, PAGE, Page, as_dicts, find_records, keys_for
from app.audit.recorded_request import KEY_FILE, SubjectHasher, subject_hasher
from app.audit.records import NewRecord
from app.clock import utc_now
from app.database.data_keys import keys_of
from app.database.engine import Connection, Database
from app.database.records import Filter, chain_heads, stream_chains, stream_records
from app.database.sqlite import empty_log
from app.errors import InvalidSettings, UnknownRecord, UnknownSubject
from app.files import new_file
from app.runtime.command import (
    command_author,
    command_database,
    command_writer,
    existing_database,
    require_database,
)
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas.lookups import AuditPage, AuditRecord
from app.settings import Settings

Json = dict[str, Any]
ERASE = "audit erase"
Report = Callable[[str, float], None]
NO_SUBJECT_KEY = "There is no subject key here: set NORMALCY_SUBJECT_KEY to the one that the service uses."


async def get_records(
    runtime: Runtime, caller: Caller, request_id: str, item: int | None = None, cursor: str | None = None
) -> AuditPage:
    """The records of a request, or of one item of it, oldest first.

    In pages, because a batch has many items, and a trace id may be used for many requests.

    Raises UnknownRecord if there are none.
    """
    page = await find_page(runtime, Filter(request_id=request_id), cursor, MAX_PAGE, item)
    if not page.records:
        raise UnknownRecord
    query = {"request_id": request_id, "item": item, "cursor": cursor}
    await record_read(runtime, caller, query, len(page.records))
    return _audit_page(caller, page)


async def list_records(runtime: Runtime, caller: Caller, wanted: Filter, cursor: str | None) -> AuditPage:
    page = await find_page(runtime, wanted, cursor, PAGE)
    query = {"from": wanted.start, "to": wanted.end, "site": wanted.site, "cursor": cursor}
    await record_read(runtime, caller, query, len(page.records))
    return _audit_page(caller, page)


def _audit_page(caller: Caller, page: Page) -> AuditPage:
    """Records are not validated: a damaged one may hold anything, and must be shown all the same."""
    records = [AuditRecord.model_construct(**record) for record in page.records]
    return AuditPage(request_id=caller.request_id, records=records, cursor=page.cursor)


async def find_page(runtime: Runtime, wanted: Filter, cursor: str | None, limit: int, item: int | None = None) -> Page:
    async with runtime.database.reading() as connection:
        return await find_records(connection, wanted, cursor, limit, item, runtime.data_keys)


async def record_read(runtime: Runtime, caller: Caller, query: Json, count: int) -> None:
    record = caller.new_record("read", runtime.clock(), input=query, output={"records": count})
    await runtime.writer.write([record], caller.deadline)


@dataclass(frozen=True, slots=True)
class ExportFormat:
    header: bytes
    line: Callable[[Json], bytes]  # one record


@dataclass(frozen=True, slots=True)
class Exported:
    records: int
    damaged: int  # of these records
    sha256: str  # of the file


async def show_records(
    settings: Settings, principal: str, wanted: Filter, cursor: str | None = None, limit: int = 100
) -> Page:
    """Raises InvalidCursor if the cursor does not come from an earlier page."""
    async with existing_database(settings) as database:
        data_keys = await open_data_keys(settings, database)
        async with database.reading() as connection:
            page = await find_records(connection, wanted, cursor, limit, data_keys=data_keys)
        query = {**asdict(wanted), "cursor": cursor}
        await _record_command(settings, database, "audit show", principal, query, {"records": len(page.records)})
    return page


async def export_records(
    settings: Settings, principal: str, wanted: Filter, out: Path, layout: ExportFormat, report: Report
) -> Exported:
    async with existing_database(settings) as database:
        data_keys = await open_data_keys(settings, database)
        with new_file(out) as file:
            exported = await _export(database, data_keys, wanted, file, layout, report)
            await _record_command(settings, database, "audit export", principal, asdict(wanted), asdict(exported))
    return exported


async def _export(
    database: Database, data_keys: DataKeys, wanted: Filter, file: BinaryIO, layout: ExportFormat, report: Report
) -> Exported:
    file.write(layout.header)
    digest, count, damaged = hashlib.sha256(layout.header), 0, 0
    async with aclosing(_stream(database, data_keys, wanted, report)) as records:
        async for record in records:
            line = layout.line(record)
            file.write(line)
            digest.update(line)
            count += 1
            damaged += record["damaged"]
    return Exported(count, damaged, digest.hexdigest())


async def _stream(database: Database, data_keys: DataKeys, wanted: Filter, report: Report) -> AsyncGenerator[Json]:
    async with database.reading() as connection:
        # The total is of all records, so the progress of a filtered export may end early.
        total = sum(head.seq for head in await chain_heads(connection, (wanted.start or "")[:7]))
        seen = 0
        async for page in stream_records(connection, wanted):
            keys = await keys_for(connection, page, data_keys)
            for linked in page:
                for record in as_dicts(linked, keys):
                    yield record
            seen += len(page)
            report(f"{seen} records", min(1.0, seen / total) if total else 1.0)


async def _record_command(
    settings: Settings, database: Database, command: str, principal: str, query: Json, result: Json
) -> None:
    async with command_writer(settings, database, command) as writer:
        record = NewRecord("read", utc_now(), principal, route=f"normalcy {command}", input=query, output=result)
        await writer.write([record])


@dataclass(frozen=True, slots=True)
class Erasure:
    data_key: UUID
    records: int  # under that key when they were counted
    in_clear: int  # records that name the patient and were never encrypted
    erased: bool
    log_emptied: bool = True  # SQLite: nothing of the key is left in the files


async def erase_subject(settings: Settings, by: str, reference: str, report: Report, really: bool) -> Erasure:
    """Raises UnknownSubject if there is nothing to erase. Without `really` nothing is erased.

    Whether there is anything, and how much, is a reading: it is recorded where no erasure is.
    """
    require_database(settings)
    subject = _hasher(settings).hash(reference)
    async with command_database(settings) as database:
        found = await _count(database, subject, report)
        if found is None or not really:
            records, in_clear = (found.records, found.in_clear) if found else (0, 0)
            counted = {"records": records, "in_clear": in_clear}
            await _record_command(settings, database, ERASE, by, {"subject": subject}, counted)
            if found is None:
                raise UnknownSubject
            return found
        author = await command_author(settings, database, ERASE)
        async with changes.open_change(database, author) as change:
            await changes.erase(change, found.data_key, subject, found.records, by, utc_now())
        is_emptied = database.dialect != "sqlite" or empty_log(database.file)
    return replace(found, erased=True, log_emptied=is_emptied)


async def _count(database: Database, subject: dict[str, str], report: Report) -> Erasure | None:
    """What would be erased. None: there is no data key."""
    async with database.reading() as connection:
        stored = await keys_of(connection, [owner_of(subject, utc_now())])
        if not stored:
            return None
        key_id = stored[0].key_id
        texts = (str(key_id).encode(), subject["hmac_sha256"].encode())
        records, in_clear = await _occurrences(connection, texts, report)
    return Erasure(key_id, records, in_clear, erased=False)


def _hasher(settings: Settings) -> SubjectHasher:
    """Of the service. A key that this command made would match no reference."""
    if not settings.subject_key and not (settings.data_dir / KEY_FILE).exists():
        raise InvalidSettings([NO_SUBJECT_KEY])
    return subject_hasher(settings)


async def _occurrences(connection: Connection, texts: tuple[bytes, bytes], report: Report) -> tuple[int, int]:
    """In the scores: each of these texts stands once in a record, and once for each item of a block."""
    total, seen = sum(head.seq for head in await chain_heads(connection)), 0
    found = [0, 0]
    async for page in stream_chains(connection):
        for row in page:
            if row.kind == "score":
                found = [count + row.payload.count(text) for count, text in zip(found, texts, strict=True)]
        seen += len(page)
        report(f"{seen} records", min(1.0, seen / total) if total else 1.0)
    return found[0], found[1]
