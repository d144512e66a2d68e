"""Create, list, rotate and revoke API keys. A change and its audit record are committed together."""

from collections.abc import Iterable
from datetime import timedelta

from app.audit import changes
from app.clock import utc_now
from app.database import keys
from app.database.checkpoints import may_read_audit
from app.database.keys import ApiKey, NewKey, make_key
from app.runtime.command import command_change, command_database, require_database
from app.settings import Settings


async def create_key(
    settings: Settings, by: str, name: str, scopes: Iterable[str], days: int, new_database: bool = False
) -> NewKey:
    """`days` 0: it never expires. A database is created only on request: a key in the wrong one is useless."""
    if not new_database:
        require_database(settings, " If it is, --new-database creates one.")
    async with command_change(settings, "keys create") as change:
        now = utc_now()
        new = make_key(name, scopes, now, now + timedelta(days=days) if days else None)
        await changes.add_key(change, new.key, by, now)
    return new


async def rotate_key(settings: Settings, by: str, key_id: str, overlap_days: int) -> tuple[ApiKey, NewKey]:
    """The old key, which lives on for the overlap at most, and its successor. Raises UnknownKey or KeyNotRotated."""
    require_database(settings)
    async with command_change(settings, "keys rotate") as change:
        return await changes.rotate_key(change, key_id, timedelta(days=overlap_days), by, utc_now())


async def revoke_key(settings: Settings, by: str, key_id: str) -> ApiKey:
    require_database(settings)
    async with command_change(settings, "keys revoke") as change:
        return await changes.revoke_key(change, key_id, by, utc_now())


async def keys_were_deleted(settings: Settings) -> bool:
    """Whether the audit has the record of a key: then the service requires a credential, although no key exists."""
    async with command_database(settings) as database, database.reading() as connection:
        return await may_read_audit(connection) and await changes.has_key_on_record(connection)


async def list_keys(settings: Settings) -> list[tuple[ApiKey, str | None]]:
    """Each with the time of its last use; None: it was never used."""
    require_database(settings)
    async with command_database(settings) as database, database.reading() as connection:
        uses = await keys.last_uses(connection)
        return [(key, uses.get(key.key_id)) for key in await keys.list_keys(connection)]
