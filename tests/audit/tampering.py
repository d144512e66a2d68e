"""Ways to tamper with an audit, each a function of what is stored: what somebody with all rights could make of it.

Each takes signed records and checkpoints and returns others, with the kinds of damage that verification must name (at
least one of them). Who may write what is for the database: `apply` writes the difference, as the owner of the tables or
as the service.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import Table, Update, bindparam, delete, insert, text, tuple_, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.chain import genesis, link, new_chain, seal
from app.audit.records import NewRecord, Record, encode
from app.audit.signed_checkpoint import OwnEnd, Signer, read_body
from app.audit.signing_key import SigningKey
from app.clock import later_month, parse_timestamp, utc_now
from app.database.checkpoints import CheckpointRow, stream_checkpoints
from app.database.engine import Database
from app.database.records import AuditRow, ChainHead, stream_chains
from app.database.tables import audit_checkpoints, audit_records
from tests.audit.recording import FACTS, score

TABLES = {"audit_records": ("no_update", "no_delete"), "audit_checkpoints": ("no_update", "no_delete")}
MISSING_RIGHT, OF_A_TRIGGER = "42501", " is append-only"
GUARDS = text("SELECT name, sql FROM sqlite_master WHERE name IN :names").bindparams(bindparam("names", expanding=True))
COLUMNS = (
    "request_id",
    "item",
    "kind",
    "at",
    "principal",
    "status",
    "site",
    "version",
    "record_id",
    "payload",
    "row_hash",
)
UUID_COLUMNS = ("chain_id", "record_id")
# Of the body of a checkpoint: what a program may fail on, or print as it is.
MALFORMED: tuple[tuple[str, object], ...] = (
    ("key_id", []),
    ("key_id", {}),
    ("key_id", "\x1b[2J\nIntact: 999 records in 9 chains"),
    ("number", "1\n999 records in 9 chains: intact\n"),
    ("number", "\ud800"),
    ("number", None),
    ("number", 2**70),
    ("writer", "\x9b2J"),
    ("previous", []),
    ("at", {}),
    ("root", []),
    ("database", "\ud800"),
    ("public_key", []),
    ("ends", {}),
    ("ends", [{"month": "2026-11", "chain_id": str(UUID(int=1)), "seq": 2**63, "head": "00", "closed": True}]),
)


@dataclass(frozen=True)
class Stored:
    rows: tuple[AuditRow, ...]
    checkpoints: tuple[CheckpointRow, ...]

    def chains(self) -> dict[UUID, list[AuditRow]]:
        found: dict[UUID, list[AuditRow]] = {}
        for row in self.rows:
            found.setdefault(row.chain_id, []).append(row)
        return found

    def cells(self) -> Iterator[tuple[object, ...]]:
        yield from (*self.rows, *self.checkpoints)

    def signed_until(self) -> dict[UUID, int]:
        """The last signed row of each chain, also of one that was found before anything was signed."""
        signed = [row for row in self.checkpoints if row.kind in ("written", "found")]
        ends = [end for row in signed for end in read_body(row.body).ends]
        return {end.chain_id: max(e.seq for e in ends if e.chain_id == end.chain_id) for end in ends}

    def signed_rows(self) -> list[AuditRow]:
        until = self.signed_until()
        return [row for row in self.rows if row.seq <= until.get(row.chain_id, 0)]

    def chain(self, pick: random.Random, least: int = 1, sealed: bool | None = None) -> list[AuditRow]:
        """A chain with at least so many signed rows."""
        until = self.signed_until()
        chains = [
            rows
            for rows in self.chains().values()
            if until.get(rows[0].chain_id, 0) >= least and sealed in (None, rows[-1].kind == "seal")
        ]
        return pick.choice(chains)

    def without(self, rows: list[AuditRow], *added: AuditRow) -> "Stored":
        gone = {row.position for row in rows}
        return replace(self, rows=(*(row for row in self.rows if row.position not in gone), *added))

    def with_checkpoints(self, *checkpoints: CheckpointRow) -> "Stored":
        return replace(self, checkpoints=tuple(checkpoints))


Row = TypeVar("Row", AuditRow, CheckpointRow)
Tampered = tuple[Stored, set[str]]
Tamper = Callable[[Stored, random.Random], Tampered]


def edit_column(stored: Stored, pick: random.Random) -> Tampered:
    row, name = pick.choice(stored.signed_rows()), pick.choice(COLUMNS)
    return stored.without([row], row._replace(**{name: _other(getattr(row, name), name, pick)})), {"MUTATED"}


def _other(value: Any, name: str, pick: random.Random) -> Any:
    if isinstance(value, bytes):
        index = pick.randrange(len(value))
        return value[:index] + bytes([value[index] ^ pick.randrange(1, 256)]) + value[index + 1 :]
    if isinstance(value, UUID):
        return uuid4()
    if name in ("item", "status"):
        return 7 if value is None else value + 1
    return pick.choice(["", "x"]) if value is None else pick.choice(["", f"{value}x"])


def delete_first(stored: Stored, pick: random.Random) -> Tampered:
    return stored.without(stored.chain(pick, least=2)[:1]), {"GAP"}


def delete_middle(stored: Stored, pick: random.Random) -> Tampered:
    rows = stored.chain(pick, least=3)
    index = pick.randrange(1, stored.signed_until()[rows[0].chain_id] - 1)
    return stored.without([rows[index]]), {"GAP"}


def delete_end(stored: Stored, pick: random.Random) -> Tampered:
    rows = stored.chain(pick, least=2)
    signed = stored.signed_until()[rows[0].chain_id]
    return stored.without(rows[pick.randrange(1, signed) :]), {"TRUNCATED"}


def delete_chain(stored: Stored, pick: random.Random) -> Tampered:
    return stored.without(stored.chain(pick)), {"VANISHED"}


def delete_chain_and_checkpoints(stored: Stored, pick: random.Random) -> Tampered:
    rows = stored.chain(pick)
    left = [row for row in stored.checkpoints if not _covers(row, rows[0].chain_id)]
    return stored.without(rows).with_checkpoints(*left), {"VANISHED"}


def _covers(row: CheckpointRow, chain_id: UUID) -> bool:
    return any(end.chain_id == chain_id for end in read_body(row.body).ends)


def delete_month(stored: Stored, pick: random.Random) -> Tampered:
    """As dropping a partition does."""
    month = pick.choice(stored.signed_rows()).month
    return stored.without([row for row in stored.rows if row.month == month]), {"VANISHED"}


def delete_all(stored: Stored, pick: random.Random) -> Tampered:
    return Stored((), ()) if pick.random() < 0.5 else stored.without(list(stored.rows)), {"EMPTIED"}


def swap_payloads(stored: Stored, pick: random.Random) -> Tampered:
    first, second = pick.sample(stored.signed_rows(), 2)
    swapped = (first._replace(payload=second.payload), second._replace(payload=first.payload))
    return stored.without([first, second], *swapped), {"MUTATED"}


def swap_numbers(stored: Stored, pick: random.Random) -> Tampered:
    rows = stored.chain(pick, least=3)
    first, second = pick.sample(rows[: stored.signed_until()[rows[0].chain_id]], 2)
    return stored.without([first, second], first._replace(seq=second.seq), second._replace(seq=first.seq)), {"MUTATED"}


def repeat_in_another_month(stored: Stored, pick: random.Random) -> Tampered:
    row = pick.choice(stored.signed_rows())
    return stored.without([], row._replace(month=later_month(row.month, 1))), {"FORK"}


def move_to_another_month(stored: Stored, pick: random.Random) -> Tampered:
    rows = stored.chain(pick)
    moved = [row._replace(month=later_month(row.month, 1)) for row in rows]
    return stored.without(rows, *moved), {"MUTATED"}


def insert_in_between(stored: Stored, pick: random.Random) -> Tampered:
    """Everything after it moves by one; no hash is computed again."""
    rows = stored.chain(pick, least=3)
    index = pick.randrange(1, stored.signed_until()[rows[0].chain_id])
    later = [row._replace(seq=row.seq + 1) for row in rows[index:]]
    return stored.without(rows[index:], rows[index]._replace(record_id=uuid4()), *later), {"MUTATED"}


def replay_after_seal(stored: Stored, pick: random.Random) -> Tampered:
    rows = stored.chain(pick, least=3, sealed=True)
    return stored.without([], pick.choice(rows)._replace(seq=rows[-1].seq + 1)), {"AFTER_SEAL"}


def append_after_seal(stored: Stored, pick: random.Random) -> Tampered:
    rows = stored.chain(pick, sealed=True)
    return stored.without([], *_continued(rows, [encode(score("forged"))])), {"AFTER_SEAL"}


def append_late(stored: Stored, pick: random.Random) -> Tampered:
    """With right hashes, to the chain of a writer that crashed, or that was found."""
    rows = stored.chain(pick, sealed=False)
    late = encode(score("forged", at=_time(rows[-1]) + timedelta(seconds=pick.randrange(181, 9999))))
    return stored.without([], *_continued(rows, [late])), {"UNSIGNED"}


def append_seal(stored: Stored, pick: random.Random) -> Tampered:
    rows = stored.chain(pick, sealed=False)
    return stored.without(
        [], *_continued(rows, [encode(score("forged", at=_time(rows[-1]))), seal(_time(rows[-1]))])
    ), {"UNSIGNED"}


def _time(row: AuditRow) -> Any:
    return parse_timestamp(row.at)


def _continued(rows: list[AuditRow], records: list[Record]) -> list[AuditRow]:
    return link(rows[-1].head, records)[0]


def rewrite(stored: Stored, pick: random.Random) -> Tampered:
    """A record is replaced, and every later hash of the chain is right again."""
    rows = stored.chain(pick, least=3)
    return stored.without(rows, *_rewritten(rows, stored.signed_until()[rows[0].chain_id], pick)), {"REWRITTEN"}


def rewrite_without_checkpoints(stored: Stored, pick: random.Random) -> Tampered:
    rows = stored.chain(pick, least=3)
    left = [row for row in stored.checkpoints if not _covers(row, rows[0].chain_id)]
    rewritten = _rewritten(rows, stored.signed_until()[rows[0].chain_id], pick)
    return stored.without(rows, *rewritten).with_checkpoints(*left), {"REWRITTEN"}


def rewrite_and_sign(stored: Stored, pick: random.Random) -> Tampered:
    """Signed again, by another key."""
    tampered, _ = rewrite(stored, pick)
    forged = forged_checkpoint(tampered.rows[-1].head)
    return tampered.with_checkpoints(*tampered.checkpoints, forged), {"REWRITTEN"}


def _rewritten(rows: list[AuditRow], signed: int, pick: random.Random) -> list[AuditRow]:
    index = pick.randrange(1, signed)
    records = [Record(*row[3:-1]) for row in rows]
    was = rows[index]
    records[index] = encode(NewRecord("score", _time(was), "forger", status=200, request_id=was.request_id))
    if was.kind == "seal":
        records[index] = seal(_time(was) + timedelta(seconds=1))
    return link(ChainHead(*rows[0][:2], 0, bytes(32)), records)[0]


def forge_chain(stored: Stored, pick: random.Random) -> Tampered:
    return stored.without([], *_forged_chain(stored, pick)), {"UNKNOWN_CHAIN"}


def forge_and_sign_chain(stored: Stored, pick: random.Random) -> Tampered:
    rows = _forged_chain(stored, pick)
    forged = stored.without([], *rows).with_checkpoints(*stored.checkpoints, forged_checkpoint(rows[-1].head))
    return forged, {"UNKNOWN_CHAIN"}


def _forged_chain(stored: Stored, pick: random.Random) -> list[AuditRow]:
    """Of any age, sealed or not."""
    when = utc_now() - timedelta(seconds=pick.choice([0, 60, 3600, 86400 * 400]))
    head = new_chain(pick.choice(stored.rows).month)
    records = [genesis(head, when, FACTS), *(encode(score("forged", at=when)) for _ in range(pick.randrange(3)))]
    return link(head, [*records, *([seal(when)] if pick.random() < 0.5 else [])])[0]


def copy_checkpoints_and_forge_chain(stored: Stored, pick: random.Random) -> Tampered:
    """Under writers that are read before the others: the copies are rejected, the checkpoints still count."""
    forged, expected = forge_chain(stored, pick)
    copies = [row._replace(writer=UUID(int=number)) for number, row in enumerate(stored.checkpoints)]
    return forged.with_checkpoints(*stored.checkpoints, *copies), expected


def forged_checkpoint(head: ChainHead) -> CheckpointRow:
    return Signer(SigningKey.generate(), "forged").written([OwnEnd(head, closed=True)], utc_now())


def forge_checkpoint(stored: Stored, pick: random.Random) -> Tampered:
    forged = forged_checkpoint(pick.choice(stored.rows).head)
    if pick.random() < 0.5:  # under the name of the key that is trusted
        name, used = (read_body(row.body).key_id.encode() for row in (stored.checkpoints[0], forged))
        forged = forged._replace(body=forged.body.replace(used, name))
    return stored.with_checkpoints(*stored.checkpoints, forged), {"BAD_SIGNATURE"}


def forge_malformed_checkpoint(stored: Stored, pick: random.Random) -> Tampered:
    """With the columns that it should have: the service may add it."""
    forged, (name, value) = forged_checkpoint(pick.choice(stored.rows).head), pick.choice(MALFORMED)
    return stored.with_checkpoints(*stored.checkpoints, with_body(forged, name, value)), {"BAD_SIGNATURE"}


def with_body(row: CheckpointRow, name: str, value: object) -> CheckpointRow:
    return row._replace(body=json.dumps({**json.loads(row.body), name: value}).encode())


class Respelled:
    """A UUID for a column of SQLite, which stores its `hex`."""

    def __init__(self, text: str) -> None:
        self.hex = text


SPELLINGS: tuple[Callable[[UUID], str], ...] = (
    str,
    lambda value: value.hex.upper(),
    lambda value: f"{{{value}}}",
    lambda value: value.urn,
    lambda value: f" {value.hex}",
)


def respelled(row: Row, name: str, spell: Callable[[UUID], str]) -> Row:
    changed: dict[str, Any] = {name: Respelled(spell(getattr(row, name)))}
    return row._replace(**changed)


def respell(stored: Stored, pick: random.Random) -> Tampered:
    """The same UUID in other letters: PostgreSQL has a type for UUIDs, so there this is no change."""
    spell, name = pick.choice(SPELLINGS), pick.choice([*UUID_COLUMNS, "writer"])
    if name == "writer":
        checkpoint = pick.choice(stored.checkpoints)
        return _with_other(stored, checkpoint, respelled(checkpoint, name, spell)), {"BAD_SIGNATURE"}
    row = pick.choice(stored.signed_rows())
    expected = {"MUTATED"} if name == "record_id" else {"GAP", "TRUNCATED", "VANISHED"}
    return stored.without([row], respelled(row, name, spell)), expected


def edit_checkpoint(stored: Stored, pick: random.Random) -> Tampered:
    row = pick.choice(stored.checkpoints)
    name = pick.choice(["writer", "number", "kind", "body", "signature"])
    value = getattr(row, name) + 1000 if name == "number" else _other(getattr(row, name), name, pick)
    return _with_other(stored, row, row._replace(**{name: value})), {"BAD_SIGNATURE"}


def exchange_signatures(stored: Stored, pick: random.Random) -> Tampered:
    row, other = pick.sample(stored.checkpoints, 2)
    return _with_other(stored, row, row._replace(signature=other.signature)), {"BAD_SIGNATURE"}


def _with_other(stored: Stored, old: CheckpointRow, new: CheckpointRow) -> Stored:
    return stored.with_checkpoints(*(new if row == old else row for row in stored.checkpoints))


def delete_checkpoint(stored: Stored, pick: random.Random) -> Tampered:
    gone = pick.choice(stored.checkpoints)
    return stored.with_checkpoints(*(row for row in stored.checkpoints if row != gone)), {"CHECKPOINT_GONE"}


def delete_checkpoints(stored: Stored, pick: random.Random) -> Tampered:
    return stored.with_checkpoints(), {"CHECKPOINT_GONE"}


TAMPERS: tuple[Tamper, ...] = (
    edit_column,
    delete_first,
    delete_middle,
    delete_end,
    delete_chain,
    delete_chain_and_checkpoints,
    delete_month,
    delete_all,
    swap_payloads,
    swap_numbers,
    repeat_in_another_month,
    move_to_another_month,
    insert_in_between,
    replay_after_seal,
    append_after_seal,
    append_late,
    append_seal,
    rewrite,
    rewrite_without_checkpoints,
    rewrite_and_sign,
    forge_chain,
    forge_and_sign_chain,
    copy_checkpoints_and_forge_chain,
    forge_checkpoint,
    forge_malformed_checkpoint,
    respell,
    edit_checkpoint,
    exchange_signatures,
    delete_checkpoint,
    delete_checkpoints,
)


async def read_stored(database: Database) -> Stored:
    async with database.reading() as connection:
        rows = [row async for page in stream_chains(connection) for row in page]
        return Stored(tuple(rows), tuple([row async for row in stream_checkpoints(connection)]))


def can_store(database: Database, then: Stored) -> bool:
    """PostgreSQL has a type for UUIDs, and so no other spelling of one."""
    return database.dialect == "sqlite" or not any(isinstance(cell, Respelled) for row in then.cells() for cell in row)


def only_adds(now: Stored, then: Stored) -> bool:
    """All that the service may do."""
    return set(now.cells()) <= set(then.cells())


async def apply(database: Database, now: Stored, then: Stored, as_owner: bool) -> bool:
    """Write the difference. False: the database refused it to the service, and nothing was changed."""
    try:
        async with database.writing() as connection:
            restore = await _become(connection, as_owner)
            await _write_difference(connection, now, then)
            for statement in restore:
                await connection.execute(text(statement))
    except DBAPIError as error:
        if as_owner or not _is_refusal(error):
            raise
        return False
    return True


def _is_refusal(error: DBAPIError) -> bool:
    """By a missing right (in PostgreSQL the triggers use its code too) or a trigger of SQLite, not by a key that exists
    or a lost connection."""
    return getattr(error.orig, "sqlstate", "") == MISSING_RIGHT or str(error.orig).endswith(OF_A_TRIGGER)


async def _become(connection: AsyncConnection, as_owner: bool) -> list[str]:
    """Removes the guards; returns what restores them. The service has none of the owner's rights."""
    is_postgres = connection.dialect.name == "postgresql"
    if not as_owner:
        if is_postgres:
            await connection.execute(text("SET LOCAL ROLE normalcy_writer"))
        return []
    if is_postgres:
        for table in TABLES:
            await connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER {table}_no_change"))
        return [f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_change" for table in TABLES]
    await connection.execute(text("PRAGMA defer_foreign_keys = ON"))
    names = [f"{table}_{guard}" for table, guards in TABLES.items() for guard in guards]
    guards = (await connection.execute(GUARDS, {"names": names})).all()
    for name, _ in guards:
        await connection.execute(text(f"DROP TRIGGER {name}"))
    return [sql for _, sql in guards]


async def _write_difference(connection: AsyncConnection, now: Stored, then: Stored) -> None:
    await _write_table(connection, audit_records, now.rows, then.rows)
    await _write_table(connection, audit_checkpoints, now.checkpoints, then.checkpoints)


async def _write_table(
    connection: AsyncConnection, table: Table, now: Sequence[tuple[Any, ...]], then: Sequence[tuple[Any, ...]]
) -> None:
    """A row that keeps its key is updated; any other difference is a row that is gone, or one more."""
    keys = list(table.primary_key.columns)
    old, new = ({row[: len(keys)]: row for row in rows} for rows in (now, then))
    gone, added = old.keys() - new.keys(), [new[key] for key in new.keys() - old.keys()]
    edited = [new[key] for key in old.keys() & new.keys() if old[key] != new[key]]
    names = [column.name for column in table.columns]
    if edited:
        await connection.execute(
            _update_by_key(table), [dict(zip(map(_new, names), row, strict=True)) for row in edited]
        )
    if gone:
        await connection.execute(delete(table).where(tuple_(*keys).in_(gone)))
    if added:
        await connection.execute(insert(table).inline(), [dict(zip(names, row, strict=True)) for row in added])


def _update_by_key(table: Table) -> Update:
    of_row = [column == bindparam(_new(column.name)) for column in table.primary_key]
    others = [column.name for column in table.columns if not column.primary_key]
    return update(table).where(*of_row).values({name: bindparam(_new(name)) for name in others})


def _new(name: str) -> str:
    """The name of a parameter: those of columns are reserved in an UPDATE."""
    return f"new_{name}"
