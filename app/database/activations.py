"""Which version of each site's model is current. Rows are only ever added; the newest of a site holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import NamedTuple

from sqlalchemy import func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import activations
from app.database.times import timestamp

LOCK = 0x61637469  # "acti"


@dataclass(frozen=True, slots=True)
class Activation:
    id: int
    site: str
    version: str
    sha256: str
    activated_at: str
    activated_by: str


class Reign(NamedTuple):
    """A version and how long it was current; `until` None: it still is."""

    activation: Activation
    until: str | None


async def record_activation(
    connection: AsyncConnection, site: str, version: str, sha256: str, by: str, clock: Callable[[], datetime]
) -> Activation:
    if connection.dialect.name == "postgresql":
        # One at a time, so that ids become visible in their order and a poll for later ids misses none.
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    # Its time too is taken behind the lock, so that no version ends before it began.
    at = timestamp(clock())
    values = {"site": site, "version": version, "sha256": sha256, "activated_at": at, "activated_by": by}
    added = await connection.execute(insert(activations).values(values).returning(activations.c.id))
    return Activation(added.scalar_one(), **values)


async def activations_since(connection: AsyncConnection, last_id: int) -> list[Activation]:
    """What was activated after `last_id`, oldest first: one look at the end of an index, for polling."""
    query = select(activations).where(activations.c.id > last_id).order_by(activations.c.id)
    return [Activation(*row) for row in await connection.execute(query)]


async def current_activations(connection: AsyncConnection) -> dict[str, Activation]:
    """The newest of each site. A site without one has no entry."""
    newest = select(func.max(activations.c.id)).group_by(activations.c.site)
    rows = await connection.execute(select(activations).where(activations.c.id.in_(newest)))
    return {activation.site: activation for activation in (Activation(*row) for row in rows)}


async def history(connection: AsyncConnection, site: str) -> list[Reign]:
    """Which version was current from when to when, oldest first."""
    query = select(activations).where(activations.c.site == site).order_by(activations.c.id)
    return _reigns([Activation(*row) for row in await connection.execute(query)])


def _reigns(line: Sequence[Activation]) -> list[Reign]:
    ends = (successor.activated_at for successor in line[1:])
    return [Reign(activation, until) for activation, until in zip_longest(line, ends)]
