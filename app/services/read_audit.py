"""Read the audit from the command line: shown, exported or replayed. Each reading is on record before it is told."""

import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from app.audit.lookup import Page, as_dict, find_records
from app.audit.records import NewRecord
from app.clock import utc_now
from app.database.engine import Database
from app.database.records import Filter, heads, stream
from app.files import new_file
from app.runtime.command import inspecting, recording
from app.settings import Settings

Json = dict[str, Any]
Report = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Layout:
    """How an export writes: once at the top, and once per record."""

    header: bytes
    line: Callable[[Json], bytes]


@dataclass(frozen=True, slots=True)
class Exported:
    records: int
    damaged: int  # of them
    sha256: str  # of the file


async def show_records(
    settings: Settings, principal: str, wanted: Filter, cursor: str | None = None, limit: int = 100
) -> Page:
    """Raises InvalidCursor for a cursor that is not from an earlier page."""
    async with inspecting(settings) as database:
        async with database.reading() as connection:
            page = await find_records(connection, wanted, cursor, limit)
        looked_for = {**asdict(wanted), "cursor": cursor}
        await _record(settings, database, "audit show", principal, looked_for, {"records": len(page.records)})
    return page


async def export_records(
    settings: Settings, principal: str, wanted: Filter, out: Path, layout: Layout, report: Report
) -> Exported:
    async with inspecting(settings) as database:
        with new_file(out) as file:
            exported = await _write(database, wanted, file, layout, report)
            await _record(settings, database, "audit export", principal, asdict(wanted), asdict(exported))
    return exported


async def _write(database: Database, wanted: Filter, file: BinaryIO, layout: Layout, report: Report) -> Exported:
    file.write(layout.header)
    digest, count, damaged = hashlib.sha256(layout.header), 0, 0
    async with aclosing(_records(database, wanted, report)) as records:
        async for record in records:
            line = layout.line(record)
            file.write(line)
            digest.update(line)
            count += 1
            damaged += record["damaged"]
    return Exported(count, damaged, digest.hexdigest())


async def _records(database: Database, wanted: Filter, report: Report) -> AsyncGenerator[Json]:
    async with database.reading() as connection:
        # Of all records, so that the bar of a filtered export may end early.
        total = sum(head.seq for head in await heads(connection, (wanted.start or "")[:7]))
        seen = 0
        async for page in stream(connection, wanted):
            for linked in page:
                yield as_dict(linked)
            seen += len(page)
            report(f"{seen} records", min(1.0, seen / total) if total else 1.0)


async def _record(
    settings: Settings, database: Database, command: str, principal: str, looked_for: Json, found: Json
) -> None:
    async with recording(settings, database, command) as writer:
        draft = NewRecord("read", utc_now(), principal, route=f"normalcy {command}", input=looked_for, output=found)
        await writer.write([draft])
