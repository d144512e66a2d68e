"""Retire months of the audit: remove them from the database on purpose, so that verification can tell it from a loss.

The ends of all their chains are signed, a checkpoint of kind `retired` for each month, and what was done is recorded.
The keys and activations whose records leave get new ones, marked `adopted`, in the same transaction; the records of
erasures are repeated.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.audit.changes import ERASED, Change, activation_change, key_change, open_change, short_chain
from app.audit.records import NewRecord, decode
from app.audit.signed_checkpoint import OwnEnd
from app.audit.verify import CREATED_STEPS
from app.clock import later_month, month_of, utc_now
from app.database.activations import Activation, all_activations, lock_activations
from app.database.appender import check_durability
from app.database.checkpoints import add_checkpoints
from app.database.engine import Connection, Database
from app.database.keys import ApiKey, list_keys
from app.database.migrate import partition_name
from app.database.records import (
    AuditRow,
    ChainHead,
    RecordPosition,
    add_records,
    chain_heads,
    records_of_kind,
    stream_month,
)
from app.database.retirement import remove_months
from app.database.sqlite import serve_lock
from app.domain.card import ModelRef
from app.errors import FileExists, RetirementRefused
from app.files import new_file, publish_file, synchronise
from app.runtime.command import command_author, command_database, require_database
from app.services.verify_audit import verify_database
from app.settings import Settings

Json = dict[str, Any]
Report = Callable[[str, float], None]
COMMAND = "audit retire"
_PLAIN = re.compile(r'[^",\r\n]+')  # psql writes it without quotation marks
FOLDER = "retired"  # of the data folder


@dataclass(frozen=True, slots=True)
class Month:
    month: str
    chains: int
    records: int
    stored_in: str  # the table or the file where its records are, or will be


@dataclass(frozen=True, slots=True)
class Retirement:
    retired: bool  # False: a dry run
    months: tuple[Month, ...]
    keys: int  # that get a new record
    activations: int


@dataclass(frozen=True, slots=True)
class _MonthsContent:
    """What is in the months that leave."""

    heads: Sequence[ChainHead]
    keys: Sequence[ApiKey]
    activations: Sequence[tuple[Activation, int]]  # with the id of the one before it
    erasures: Sequence[Json]  # what their records say

    @property
    def months(self) -> list[str]:
        return sorted({head.month for head in self.heads})


async def retire_months(
    settings: Settings,
    by: str,
    before: str,
    report: Report,
    below_minimum: bool = False,
    dry_run: bool = True,
    clock: Callable[[], datetime] = utc_now,
) -> Retirement:
    """Retire all months before this one. Raises RetirementRefused if they must stay, or if the audit is not intact."""
    check_month(before, month_of(clock()), settings.audit_retention_months, below_minimum)
    require_database(settings)
    async with command_database(settings) as database:
        with ExitStack() as stack:
            if database.dialect == "sqlite" and not dry_run:
                stack.enter_context(serve_lock(database.file))  # deleting a month may take longer than a score may
            await _check_intact(database, settings, report)
            async with database.reading() as connection:
                content = await _read_content(connection, before)
            months = _months(database, settings, content)
            done = Retirement(not dry_run, months, len(content.keys), len(content.activations))
            if dry_run or not content.heads:
                return done
            made = stack.enter_context(ExitStack())  # removes the files that this run made, while the rows are there
            if database.dialect == "sqlite":
                await _export(database, done.months, made)
            author = await command_author(settings, database, COMMAND)
            async with open_change(database, author) as change:
                if await _read_content(change.connection, before) != content:
                    raise RetirementRefused("The audit changed while it was exported: nothing was retired, try again.")
                await _retire(change, content, done, by, before, clock())
                made.pop_all()  # a commit that fails may have taken place all the same
    return done


def check_month(before: str, this_month: str, minimum: int, below_minimum: bool) -> None:
    """Raises RetirementRefused. A process may still write to the chain that it opened last month."""
    last = later_month(this_month, -1)
    if before > last:
        raise RetirementRefused(f"--before must be {last} or earlier: later months may still be written to.")
    oldest = later_month(this_month, -minimum)
    if before > oldest and not below_minimum:
        raise RetirementRefused(
            f"Months from {oldest} on are younger than {minimum} months (NORMALCY_AUDIT_RETENTION_MONTHS): choose an "
            "earlier month, or add --below-minimum."
        )


async def _check_intact(database: Database, settings: Settings, report: Report) -> None:
    found = await verify_database(database, settings, report)
    if not found.intact:
        raise RetirementRefused("The audit is not intact, so nothing is retired: `normalcy audit verify` says why.")


async def _read_content(connection: Connection, before: str) -> _MonthsContent:
    heads = [head for head in await chain_heads(connection) if head.month < before]
    changes = [(row.month, decode(row.payload).output or {}) for row in await records_of_kind(connection, "key")]
    erasures = [output for month, output in changes if month < before and output.get("step") == ERASED]
    recorded_later = {
        output.get("key_id") for month, output in changes if month >= before and output.get("step") in CREATED_STEPS
    }
    keys = [key for key in await list_keys(connection) if key.key_id not in recorded_later] if heads else []
    activations, last = [], 0
    for activation in await all_activations(connection):
        if activation.month < before:
            activations.append((activation, last))
        last = activation.id
    return _MonthsContent(heads, keys, activations, erasures)


def _months(database: Database, settings: Settings, content: _MonthsContent) -> tuple[Month, ...]:
    chains = Counter(head.month for head in content.heads)
    records = Counter[str]()
    for head in content.heads:
        records[head.month] += head.seq
    file = settings.data_dir.resolve() / FOLDER
    return tuple(
        Month(
            month,
            chains[month],
            records[month],
            str(file / f"audit-{month}.csv") if database.dialect == "sqlite" else partition_name(month),
        )
        for month in content.months
    )


async def _export(database: Database, months: Sequence[Month], made: ExitStack) -> None:
    """Each month to a file as psql would export it, see docs/auditors.md. `made` removes the files.

    A run that was killed before its commit leaves the same files: they are used.
    """
    folder = Path(months[0].stored_in).parent
    folder.mkdir(mode=0o700, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=folder) as unfinished:
        for month in months:
            exported = Path(unfinished) / month.month
            await _export_month(database, month.month, exported)
            _publish(exported, Path(month.stored_in), made)
    for each in (folder, folder.parent):
        synchronise(each)


async def _export_month(database: Database, month: str, path: Path) -> None:
    with new_file(path) as file:
        file.write(_csv_line(AuditRow._fields))
        async with database.reading() as connection:
            async for page in stream_month(connection, month):
                file.write(b"".join(map(_csv_line, page)))


def _publish(exported: Path, path: Path, made: ExitStack) -> None:
    is_new = not path.exists()
    try:
        publish_file(exported, path)
    except FileExists as error:
        raise RetirementRefused(
            f"{path} is another archive of the same month: nothing was retired. Move it elsewhere, and try again."
        ) from error
    if is_new:
        made.callback(path.unlink)


def _csv_line(cells: Sequence[object]) -> bytes:
    """NULL without quotation marks and an empty text with them, which Python's csv module does not distinguish."""
    return ",".join(map(_cell, cells)).encode("utf-8", "backslashreplace") + b"\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if _PLAIN.fullmatch(text) else '"' + text.replace('"', '""') + '"'


async def _retire(
    change: Change, content: _MonthsContent, done: Retirement, by: str, before: str, now: datetime
) -> None:
    connection, signer = change.connection, change.author.signer.for_another_writer()
    await check_durability(connection)
    await lock_activations(connection)
    rows = short_chain(_records(content, done, by, before, now), change.author.facts, now)
    await add_records(connection, rows)
    signed = [signer.written([OwnEnd(rows[-1].head, closed=True)], now)]
    for month in content.months:
        heads = [head for head in content.heads if head.month == month]
        signed.append(signer.retired(heads, now, signed[-1]))
    await add_checkpoints(connection, signed)
    first = 2 + len(content.keys) + len(content.erasures)  # after the genesis and the record of the command
    moved: dict[int, RecordPosition] = {
        activation.id: rows[index].position for index, (activation, _) in enumerate(content.activations, first)
    }
    await remove_months(connection, content.months, moved)
    change.signed += signed


def _records(content: _MonthsContent, done: Retirement, by: str, before: str, now: datetime) -> list[NewRecord]:
    route = f"normalcy {COMMAND}"
    output = {**asdict(done), "months": [asdict(month) for month in done.months]}
    found = [NewRecord("read", now, by, route=route, input={"before": before}, output=output)]
    found += [NewRecord("key", now, by, route=route, output=key_change("adopted", key)) for key in content.keys]
    found += [NewRecord("key", now, by, route=route, output=erasure) for erasure in content.erasures]
    for each, after in content.activations:
        adopted = activation_change("adopted", each.activated_at, each.activated_by, after)
        model = ModelRef(each.site, each.version, each.sha256)
        found.append(NewRecord("activation", now, by, route=route, model=model, output=adopted))
    return found
