"""Which version of each site's model is current. Rows are only ever added; the newest row of a site is current."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, exists, func, insert, select, text, true
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.records import RecordPosition
from app.database.tables import activations, audit_records
from app.domain.card import ModelRef

LOCK = 0x61637469  # "acti"
MAY_READ_RECORDS = "SELECT has_table_privilege('audit_records', 'SELECT')"
HIGHEST_ASSIGNED_ID = """
    SELECT coalesce(last_value, 0)
    FROM pg_sequences, CAST(pg_get_serial_sequence('activations', 'id') AS regclass) AS counter
    WHERE CAST(format('%I.%I', schemaname, sequencename) AS regclass) = counter
        AND has_sequence_privilege(counter, 'SELECT')
"""


@dataclass(frozen=True, slots=True)
class Activation:
    id: int
    site: str
    version: str
    sha256: str
    activated_at: str
    activated_by: str
    month: str  # with the next two, the position of its record
    chain_id: UUID
    seq: int
    has_record: bool = True  # False: the row was not inserted by this program

    @property
    def position(self) -> RecordPosition:
        return RecordPosition(self.month, self.chain_id, self.seq)


class ActivePeriod(NamedTuple):
    """A version and how long it was current; `until` None: it still is."""

    activation: Activation
    until: str | None


async def lock_activations(connection: AsyncConnection) -> int:
    """The highest id, 0 if there is none. No other activation can be added until this transaction ends."""
    if connection.dialect.name == "postgresql":
        # One at a time, so that ids become visible in order and a poll for newer ids misses none.
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    return await connection.scalar(select(func.max(activations.c.id))) or 0


async def add_activation(
    connection: AsyncConnection, ref: ModelRef, at: str, by: str, position: RecordPosition
) -> Activation:
    """After `lock_activations`, and after its record was added."""
    columns = {**asdict(ref), "activated_at": at, "activated_by": by, **position._asdict()}
    added = await connection.execute(insert(activations).values(columns).returning(activations.c.id))
    return Activation(added.scalar_one(), **columns)


async def highest_assigned_id(connection: AsyncConnection) -> int | None:
    """The highest id that PostgreSQL has assigned. None: it is SQLite, or this login may not read the sequence."""
    return await connection.scalar(text(HIGHEST_ASSIGNED_ID)) if connection.dialect.name == "postgresql" else None


async def all_activations(connection: AsyncConnection) -> list[Activation]:
    """Oldest first."""
    return await _activations(connection, (await _rows(connection)).order_by(activations.c.id))


async def activations_since(connection: AsyncConnection, last_id: int) -> list[Activation]:
    """What was activated after `last_id`, oldest first. For polling: reads the end of an index only."""
    query = (await _rows(connection)).where(activations.c.id > last_id).order_by(activations.c.id)
    return await _activations(connection, query)


async def current_activations(connection: AsyncConnection) -> dict[str, Activation]:
    """The newest of each site. A site without one has no entry."""
    newest = select(func.max(activations.c.id)).group_by(activations.c.site)
    rows = await _activations(connection, (await _rows(connection)).where(activations.c.id.in_(newest)))
    return {activation.site: activation for activation in rows}


async def history(connection: AsyncConnection, site: str) -> list[ActivePeriod]:
    """Which version was current from when to when, oldest first."""
    query = (await _rows(connection)).where(activations.c.site == site).order_by(activations.c.id)
    return _periods(await _activations(connection, query))


async def _rows(connection: AsyncConnection) -> Select[Any]:
    return select(*activations.c, (await _has_record(connection)).label("has_record"))


async def _has_record(connection: AsyncConnection) -> ColumnElement[bool]:
    """Whether it refers to the record of an activation of that version.

    A PostgreSQL login that may not read records cannot check this; the foreign key ensures that some record is there.
    """
    if connection.dialect.name == "postgresql" and not await connection.scalar(text(MAY_READ_RECORDS)):
        return true()
    same = (audit_records.c[name] == activations.c[name] for name in (*RecordPosition._fields, "site", "version"))
    return exists().where(*same, audit_records.c.kind == "activation")


async def _activations(connection: AsyncConnection, query: Select[Any]) -> list[Activation]:
    return [Activation(*row) for row in await connection.execute(query)]


def _periods(of_site: Sequence[Activation]) -> list[ActivePeriod]:
    ends = (successor.activated_at for successor in of_site[1:])
    return [ActivePeriod(activation, until) for activation, until in zip_longest(of_site, ends)]
