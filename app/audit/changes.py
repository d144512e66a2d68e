"""Changes of keys and activations on record: a short chain of its own, committed together with the change.

Both are there or neither: no crash leaves a key or an activation without its record, nor a record without its row.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.chain import genesis, link, new_chain, seal
from app.audit.records import NewRecord, encode
from app.clock import month_of, timestamp, utc_now
from app.database.activations import Activation, add_activation, last_activation
from app.database.appender import AuditRow
from app.database.durability import refuse_loss
from app.database.keys import ApiKey, find_key, revoke_key, save_key
from app.database.place import Place, add_records
from app.domain.card import ModelRef
from app.errors import ActivationFailed

Json = dict[str, Any]
CREATE, REVOKE = "normalcy keys create", "normalcy keys revoke"  # the only ways to change a key
OUT_OF_ORDER = "an activation has a number that the database did not give it; `normalcy audit verify` names it."
KeyStep = Literal["created", "revoked", "adopted"]  # adopted: it was there before changes were recorded
ActivationStep = Literal["activated", "adopted"]


async def add_key(connection: AsyncConnection, key: ApiKey, by: str, facts: Json, now: datetime) -> None:
    draft = NewRecord("key", now, by, route=CREATE, output=key_change("created", key))
    await _record(connection, draft, facts)
    await save_key(connection, key)


async def end_key(connection: AsyncConnection, key_id: str, by: str, facts: Json, now: datetime) -> ApiKey:
    """At once and for good. Ending it twice keeps the first time, and its one record."""
    known = await find_key(connection, key_id)
    if known is not None and known.revoked_at is not None:
        return known
    ended = await revoke_key(connection, key_id, now)
    await _record(connection, NewRecord("key", now, by, route=REVOKE, output=key_change("revoked", ended)), facts)
    return ended


async def activate(
    connection: AsyncConnection, ref: ModelRef, draft: NewRecord, facts: Json, clock: Callable[[], datetime] = utc_now
) -> Activation:
    """`draft` says who asked, and how. Raises ActivationFailed if another one would stand before it for ever."""
    after = await last_activation(connection)
    now = clock()  # behind the lock, so that no version ends before it began
    told = activation_change("activated", timestamp(now), draft.principal, after)
    place = await _record(connection, replace(draft, at=now, model=ref, output=told), facts)
    made = await add_activation(connection, ref, timestamp(now), draft.principal, place)
    if made.id <= after:  # somebody chose a number
        raise ActivationFailed(OUT_OF_ORDER)
    return made


async def _record(connection: AsyncConnection, draft: NewRecord, facts: Json) -> Place:
    """Where the record stands, once the transaction of the connection is committed. Raises NotDurable."""
    await connection.run_sync(refuse_loss)
    rows = short_chain([draft], facts, draft.at)
    await add_records(connection, rows)
    return Place(*rows[1][:3])


def short_chain(drafts: Sequence[NewRecord], facts: Json, now: datetime) -> list[AuditRow]:
    """Opened, written and sealed at once: the drafts stand from row 2 on."""
    head = new_chain(month_of(now))
    return link(head, [genesis(head, now, facts), *map(encode, drafts), seal(now)])[0]


def key_change(step: KeyStep, key: ApiKey) -> Json:
    return {"step": step, **key_columns(key)}


def key_columns(key: ApiKey) -> Json:
    """Every column of its row. Of the secret's hash only a digest: enough to notice that it was replaced."""
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "secret_check": hashlib.sha256(key.secret_sha256).hexdigest(),
    }


def activation_change(step: ActivationStep, at: str, by: str, after: int) -> Json:
    """`after` is the id of the activation before it, of whatever site: the order decides which one holds."""
    return {"step": step, "activated_at": at, "activated_by": by, "after": after}
