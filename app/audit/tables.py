"""Do the tables of keys and activations say what their records say?

A record tells of every key that was made or revoked and of every activation, in the same transaction as the row. So
each row has its record, each record its row, and their columns are equal; whatever differs was changed by somebody
else. Whether the records themselves are genuine is for `verify.py` to say.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.changes import key_columns
from app.audit.records import UNREADABLE, decode
from app.database.activations import Activation, activations_counted, all_activations
from app.database.appender import AuditRow
from app.database.keys import ApiKey, list_keys
from app.database.place import Place, records_of_kind

Json = dict[str, Any]

KEYS, ACTIVATIONS = "api_keys", "activations"
MADE = ("created", "adopted")
ACTIVATED = ("activated", "adopted")  # records of other steps were written before rows referred to theirs


class RowDamage(StrEnum):
    NO_RECORD = "NO_RECORD"  # a row that no record tells of
    ROW_GONE = "ROW_GONE"  # a record tells of a row that is not there
    ROW_CHANGED = "ROW_CHANGED"  # a row says other than its record
    ROW_MOVED = "ROW_MOVED"  # activations stand in another order than they were made
    UNREADABLE = "UNREADABLE"  # a record that should tell of a row says nothing


@dataclass(frozen=True, slots=True)
class RowFinding:
    damage: RowDamage
    table: str
    row: str  # the id of a key or of an activation; empty: it is not there any more
    record_id: UUID | None  # that tells of it
    detail: str


class Change(NamedTuple):
    """What a record says of a row."""

    place: Place
    record_id: UUID
    model: Json
    told: Json


async def compare_tables(connection: AsyncConnection) -> tuple[RowFinding, ...]:
    keys, silent = _changes(await records_of_kind(connection, "key"), KEYS)
    activated, silent_too = _changes(await records_of_kind(connection, "activation"), ACTIVATIONS)
    rows = await all_activations(connection)
    return (
        *silent,
        *silent_too,
        *compare_keys(await list_keys(connection), keys),
        *compare_activations(rows, activated),
        *_beyond(rows, await activations_counted(connection)),
    )


def compare_keys(rows: Sequence[ApiKey], changes: Sequence[Change]) -> list[RowFinding]:
    made: dict[str, Change] = {}
    ended: dict[str, Change] = {}
    findings = []
    for change in changes:
        key_id, step = str(change.told.get("key_id")), change.told.get("step")
        first = (made if step in MADE else ended).setdefault(key_id, change)
        if step in MADE and first is not change:
            found = (RowDamage.ROW_CHANGED, KEYS, key_id, change.record_id)
            findings.append(RowFinding(*found, "a second record tells that it was made"))
    present = {row.key_id: row for row in rows}
    for key_id in sorted(present.keys() | made.keys() | ended.keys()):
        findings += _compare_key(key_id, present.get(key_id), made.get(key_id), ended.get(key_id))
    return findings


def _compare_key(key_id: str, row: ApiKey | None, made: Change | None, ended: Change | None) -> Iterator[RowFinding]:
    known = made or ended
    if row is None and known is not None:
        yield RowFinding(RowDamage.ROW_GONE, KEYS, key_id, known.record_id, "the key is on record and not in the table")
    elif row is not None and made is None:
        yield RowFinding(RowDamage.NO_RECORD, KEYS, key_id, None, "no record tells that this key was made")
    elif row is not None and made is not None:
        said = made.told | ({"revoked_at": ended.told.get("revoked_at")} if ended else {})
        yield from _differing(KEYS, key_id, (ended or made).record_id, key_columns(row), said)


def compare_activations(rows: Sequence[Activation], changes: Sequence[Change]) -> list[RowFinding]:
    """`rows` in the order of their ids."""
    open_records = {change.place: change for change in changes if change.told.get("step") in ACTIVATED}
    findings: list[RowFinding] = []
    order: list[tuple[Activation, Change]] = []
    for row in rows:
        change = open_records.pop(row.place, None)
        if change is None:
            detail = "no record of an activation stands where it points, or another row has that record"
            findings.append(RowFinding(RowDamage.NO_RECORD, ACTIVATIONS, str(row.id), None, detail))
            continue
        order.append((row, change))
        columns = {name: getattr(row, name) for name in ("site", "version", "sha256", "activated_at", "activated_by")}
        findings += _differing(ACTIVATIONS, str(row.id), change.record_id, columns, change.model | change.told)
    for change in open_records.values():
        name = f"{change.model.get('site')} {change.model.get('version')}"
        detail = f"the activation of {name} is on record and not in the table"
        findings.append(RowFinding(RowDamage.ROW_GONE, ACTIVATIONS, "", change.record_id, detail))
    return findings or list(_moved(order))


def _moved(order: Sequence[tuple[Activation, Change]]) -> Iterator[RowFinding]:
    before = 0
    for row, change in order:
        if change.told.get("after") != before:
            detail = "it was made after another activation than the one that stands before it"
            yield RowFinding(RowDamage.ROW_MOVED, ACTIVATIONS, str(row.id), change.record_id, detail)
        before = row.id


def _beyond(rows: Sequence[Activation], counted: int | None) -> Iterator[RowFinding]:
    for row in rows:
        if counted is not None and row.id > counted:
            detail = "its number is higher than any that the database gave out: somebody chose it"
            yield RowFinding(RowDamage.ROW_MOVED, ACTIVATIONS, str(row.id), None, detail)


def _differing(
    table: str, row: str, record_id: UUID, columns: Mapping[str, Any], said: Mapping[str, Any]
) -> Iterator[RowFinding]:
    """By the names of the columns; what they say now or said before is for whoever may read both."""
    names = [name for name, value in columns.items() if value != said.get(name)]
    if names:
        detail = f"other than on record: {', '.join(names)}"
        yield RowFinding(RowDamage.ROW_CHANGED, table, row, record_id, detail)


def _changes(rows: Sequence[AuditRow], table: str) -> tuple[list[Change], list[RowFinding]]:
    """What the records say, and those that say nothing: `--since` may leave their chains out."""
    changes, silent = [], []
    for row in rows:
        change = _change(row)
        if change is None:
            silent.append(RowFinding(RowDamage.UNREADABLE, table, "", row.record_id, "its record cannot be read"))
        else:
            changes.append(change)
    return changes, silent


def _change(row: AuditRow) -> Change | None:
    try:
        payload = decode(row.payload)
    except UNREADABLE:
        return None
    if payload.output is None and row.kind == "key":  # the first release wrote such records of activations
        return None
    model = msgspec.to_builtins(payload.model) if payload.model else {}
    return Change(Place(row.month, row.chain_id, row.seq), row.record_id, model, payload.output or {})
