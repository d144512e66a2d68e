"""Data keys: each encrypts the records of one patient, or of one month, and is stored wrapped (`app.audit.encryption`).

A key is destroyed by deleting its row. What remains is its id and the time, so that a process can tell an erased record
from one whose key was lost.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, delete, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from app.database.engine import Connection
from app.database.tables import data_keys

AT_ONCE = 1000  # values in one statement
COLUMN = data_keys.c


class StoredKey(NamedTuple):
    """One row of `data_keys`, in the order of its columns."""

    key_id: UUID
    owner: str | None  # whose records it encrypts; None: erased
    wrapped: bytes
    erased_at: str | None = None


async def add_keys(connection: Connection, keys: Sequence[StoredKey]) -> None:
    """Except for owners that have a key already: of several processes at once, the first one wins."""
    into = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = into(data_keys).on_conflict_do_nothing(index_elements=["owner"])
    await connection.execute(statement, [key._asdict() for key in keys])


async def keys_of(connection: Connection, owners: Iterable[str]) -> list[StoredKey]:
    return await _found(connection, (select(data_keys).where(COLUMN.owner.in_(some)) for some in _parts(owners)))


async def keys_by_id(connection: Connection, key_ids: Iterable[UUID]) -> list[StoredKey]:
    return await _found(connection, (select(data_keys).where(COLUMN.key_id.in_(some)) for some in _parts(key_ids)))


async def some_key(connection: Connection) -> StoredKey | None:
    found = await _found(connection, [select(data_keys).where(COLUMN.owner.is_not(None)).limit(1)])
    return found[0] if found else None


async def erased_keys(connection: Connection) -> list[StoredKey]:
    """Few: one for each patient who asked."""
    return await _found(connection, [select(data_keys).where(COLUMN.erased_at.is_not(None))])


async def destroy_key(connection: Connection, key_id: UUID, at: str) -> bool:
    """False if another process has destroyed it already."""
    live = (COLUMN.key_id == key_id, COLUMN.owner.is_not(None))
    if (await connection.execute(delete(data_keys).where(*live))).rowcount == 0:
        return False
    await connection.execute(insert(data_keys).values(key_id=key_id, erased_at=at))
    return True


def _parts(values: Iterable[Any]) -> Iterator[list[Any]]:
    every = list(values)
    return (every[start : start + AT_ONCE] for start in range(0, len(every), AT_ONCE))


async def _found(connection: Connection, queries: Iterable[Select[Any]]) -> list[StoredKey]:
    return [StoredKey(*row) for query in queries for row in await connection.execute(query)]
