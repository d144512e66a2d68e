"""Make, list and end API keys. A key and the record that tells of it are committed together."""

from collections.abc import Iterable
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from app.audit import changes
from app.clock import utc_now
from app.database.keys import ApiKey, NewKey, list_keys, make_key
from app.database.sqlite import FILE_NAME
from app.runtime.command import command_facts, refuse_missing, visiting
from app.settings import Settings


async def create_key(
    settings: Settings, by: str, name: str, scopes: Iterable[str], days: int, new_database: bool = False
) -> NewKey:
    """`days` 0: it never expires. A database is made only if told so: a key in the wrong one opens nothing."""
    if not new_database:
        refuse_missing(settings, " If it is, --new-database makes one.")
    async with visiting(settings) as database, database.writing() as connection:
        now = utc_now()
        made = make_key(name, scopes, now, now + timedelta(days=days) if days else None)
        await changes.add_key(connection, made.key, by, command_facts(settings, "keys create"), now)
    return made


async def end_key(settings: Settings, by: str, key_id: str) -> ApiKey:
    refuse_missing(settings)
    async with visiting(settings) as database, database.writing() as connection:
        return await changes.end_key(connection, key_id, by, command_facts(settings, "keys revoke"), utc_now())


async def all_keys(settings: Settings) -> list[ApiKey]:
    refuse_missing(settings)
    async with visiting(settings) as database, database.reading() as connection:
        return await list_keys(connection)


def which_database(settings: Settings) -> str:
    """For people: where it is, without a password."""
    if not settings.database_url:
        return str((settings.data_dir / FILE_NAME).resolve())
    url = urlsplit(settings.database_url)
    host = url.netloc.rpartition("@")[2] or parse_qs(url.query).get("host", [""])[0]
    return f"{url.path.lstrip('/')} of PostgreSQL at {host or 'localhost'}"
