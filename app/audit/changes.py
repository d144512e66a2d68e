"""Changes of keys, data keys and activations, each with its record: a short signed chain in the same transaction.

A crash leaves both or neither: no key or activation without its record, no record without its row.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import structlog

from app.audit.author import Author
from app.audit.chain import genesis, link, new_chain, seal
from app.audit.records import UNREADABLE, NewRecord, decode, encode
from app.audit.signed_checkpoint import OwnEnd
from app.clock import month_of, timestamp, utc_now
from app.database import keys
from app.database.activations import Activation, add_activation, lock_activations
from app.database.appender import check_durability
from app.database.checkpoints import CheckpointRow, add_checkpoints
from app.database.data_keys import destroy_key
from app.database.engine import Connection, Database
from app.database.keys import ApiKey, NewKey
from app.database.records import AuditRow, RecordPosition, add_records, records_of_commands
from app.domain.card import ModelRef
from app.errors import ActivationFailed, KeyNotRotated, UnknownSubject
from app.observability import describe_failure

Json = dict[str, Any]
# The only ways to change a key.
CREATE, ROTATE, REVOKE = "normalcy keys create", "normalcy keys rotate", "normalcy keys revoke"
ERASE, ERASED = "normalcy audit erase", "erased"
NOT_LIVE = "it is revoked or expired, create another one with `normalcy keys create`"
EDITED = "its times were edited in the database, `normalcy audit verify` names it"
OUT_OF_ORDER = "an activation has an id that the database did not assign; `normalcy audit verify` names it."
KeyStep = Literal["created", "rotated", "revoked", "adopted"]  # adopted: the record of its creation is not here
ActivationStep = Literal["activated", "adopted"]


@dataclass(slots=True)
class Change:
    """A transaction that adds chains of its author."""

    connection: Connection
    author: Author
    signed: list[CheckpointRow] = field(default_factory=list)


@asynccontextmanager
async def open_change(database: Database, author: Author) -> AsyncIterator[Change]:
    """Committed at the end of the block; then what was signed is written to the files."""
    async with database.writing() as connection:
        change = Change(connection, author)
        yield change
    for row in change.signed:
        try:
            await asyncio.to_thread(author.log.append, row)
        except OSError as error:  # the change is made; the checkpoint is in the database
            structlog.get_logger("audit").warning("signed checkpoint not in a file", **describe_failure(error))


async def add_key(change: Change, key: ApiKey, by: str, now: datetime) -> None:
    await _record(change, NewRecord("key", now, by, route=CREATE, output=key_change("created", key)))
    await keys.save_key(change.connection, key)


async def revoke_key(change: Change, key_id: str, by: str, now: datetime) -> ApiKey:
    """Revoke a key immediately and permanently. Revoking it again changes nothing and adds no record."""
    found = await keys.find_key(change.connection, key_id)
    if found is not None and found.revoked_at is not None:
        return found
    revoked = await keys.revoke_key(change.connection, key_id, now)
    await _record(change, NewRecord("key", now, by, route=REVOKE, output=key_change("revoked", revoked)))
    return revoked


async def rotate_key(change: Change, key_id: str, overlap: timedelta, by: str, now: datetime) -> tuple[ApiKey, NewKey]:
    """Add a key with the same rights, and let the old one expire after `overlap`, or before if it does so anyway.

    Raises UnknownKey, or KeyNotRotated.
    """
    old = await keys.lock_key(change.connection, key_id)
    if not old.is_live(now):
        raise KeyNotRotated(key_id, NOT_LIVE)
    successor = await keys.successor_of(change.connection, key_id)
    if successor is not None:
        raise KeyNotRotated(key_id, f"{successor} already replaces it, rotate that one")
    try:
        new = keys.make_successor(old, now)
    except ValueError as error:
        raise KeyNotRotated(key_id, EDITED) from error
    ends = min(filter(None, (timestamp(now + overlap), old.expires_at)))
    ended = await keys.end_key(change.connection, old, ends)
    await _record(change, NewRecord("key", now, by, route=ROTATE, output=key_change("rotated", ended)))
    await _record(change, NewRecord("key", now, by, route=ROTATE, output=key_change("created", new.key)))
    await keys.save_key(change.connection, new.key)
    return ended, new


async def erase(change: Change, key_id: UUID, subject: Json, records: int, by: str, now: datetime) -> None:
    """Destroy the data key of a patient. Raises UnknownSubject if another process has just done so."""
    output = {"step": ERASED, "data_key": key_id, "subject": subject, "records": records}
    await _record(change, NewRecord("key", now, by, route=ERASE, output=output))
    if not await destroy_key(change.connection, key_id, timestamp(now)):
        raise UnknownSubject


async def has_key_on_record(connection: Connection) -> bool:
    """Whether there ever was an API key, also if somebody has deleted its row. Erasures are of the same kind."""
    return any(_is_of_a_key(AuditRow(*row)) for row in await connection.execute(records_of_commands("key")))


def _is_of_a_key(row: AuditRow) -> bool:
    try:
        return "key_id" in (decode(row.payload).output or {})
    except UNREADABLE:
        return True  # it was changed


async def activate(
    change: Change, ref: ModelRef, record: NewRecord, clock: Callable[[], datetime] = utc_now
) -> Activation:
    """`record` says who asked, and how. Raises ActivationFailed if it would not become the newest activation."""
    after = await lock_activations(change.connection)
    now = clock()  # after taking the lock, so that no version ends before it began
    output = activation_change("activated", timestamp(now), record.principal, after)
    position = await _record(change, replace(record, at=now, model=ref, output=output))
    added = await add_activation(change.connection, ref, timestamp(now), record.principal, position)
    if added.id <= after:  # somebody chose the id of an earlier one
        raise ActivationFailed(OUT_OF_ORDER)
    return added


async def _record(change: Change, record: NewRecord) -> RecordPosition:
    """The position that the record has once the transaction is committed. Raises NotDurable."""
    connection, author = change.connection, change.author
    await check_durability(connection)
    rows = short_chain([record], author.facts, record.at)
    await add_records(connection, rows)
    signed = author.signer.for_another_writer().written([OwnEnd(rows[-1].head, closed=True)], record.at)
    await add_checkpoints(connection, [signed])
    change.signed.append(signed)
    return rows[1].position


def short_chain(records: Sequence[NewRecord], facts: Json, now: datetime) -> list[AuditRow]:
    """The rows of a whole chain: genesis, the records from row 2 on, seal."""
    head = new_chain(month_of(now))
    return link(head, [genesis(head, now, facts), *map(encode, records), seal(now)])[0]


def key_change(step: KeyStep, key: ApiKey) -> Json:
    return {"step": step, **key_columns(key)}


def key_columns(key: ApiKey) -> Json:
    """Every column of its row. Of the secret's hash only a digest: enough to detect that it was replaced."""
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "replaces": key.replaces,
        "secret_check": hashlib.sha256(key.secret_sha256).hexdigest(),
    }


def activation_change(step: ActivationStep, at: str, by: str, after: int) -> Json:
    """`after` is the id of the activation before it, of any site: the order decides which one is current."""
    return {"step": step, "activated_at": at, "activated_by": by, "after": after}
