"""Erase a patient: destroy the data key that encrypts what was recorded about them, and record that."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from app.audit import changes
from app.audit.encryption import owner_of
from app.audit.recorded_request import KEY_FILE, SubjectHasher, subject_hasher
from app.clock import utc_now
from app.database.data_keys import keys_of
from app.database.engine import Connection
from app.database.records import chain_heads, stream_chains
from app.database.sqlite import empty_log
from app.errors import InvalidSettings, UnknownSubject
from app.runtime.command import command_author, command_database, require_database
from app.settings import Settings

Report = Callable[[str, float], None]
NO_SUBJECT_KEY = "There is no subject key here: set NORMALCY_SUBJECT_KEY to the one that the service uses."


@dataclass(frozen=True, slots=True)
class Erasure:
    data_key: UUID
    records: int  # under that key when they were counted
    in_clear: int  # records that name the patient and were never encrypted
    erased: bool
    log_emptied: bool = True  # SQLite: nothing of the key is left in the files


async def erase_subject(settings: Settings, by: str, reference: str, report: Report, really: bool) -> Erasure:
    """Raises UnknownSubject if there is nothing to erase. Without `really` nothing is changed."""
    require_database(settings)
    subject = _hasher(settings).hash(reference)
    async with command_database(settings) as database:
        async with database.reading() as connection:
            stored = await keys_of(connection, [owner_of(subject, utc_now())])
            if not stored:
                raise UnknownSubject
            key_id = stored[0].key_id
            texts = (str(key_id).encode(), subject["hmac_sha256"].encode())
            records, in_clear = await _occurrences(connection, texts, report)
        if not really:
            return Erasure(key_id, records, in_clear, erased=False)
        author = await command_author(settings, database, "audit erase")
        async with changes.changing(database, author) as change:
            await changes.erase(change, key_id, subject, records, by, utc_now())
        is_emptied = database.dialect != "sqlite" or empty_log(database.file)
    return Erasure(key_id, records, in_clear, erased=True, log_emptied=is_emptied)


def _hasher(settings: Settings) -> SubjectHasher:
    """Of the service. A key that this command made would match no reference."""
    if not settings.subject_key and not (settings.data_dir / KEY_FILE).exists():
        raise InvalidSettings([NO_SUBJECT_KEY])
    return subject_hasher(settings)


async def _occurrences(connection: Connection, texts: tuple[bytes, bytes], report: Report) -> tuple[int, int]:
    """In the scores: each of these texts stands once in a record, and once for each item of a block."""
    total, seen = sum(head.seq for head in await chain_heads(connection)), 0
    found = [0, 0]
    async for page in stream_chains(connection):
        for row in page:
            if row.kind == "score":
                found = [count + row.payload.count(text) for count, text in zip(found, texts, strict=True)]
        seen += len(page)
        report(f"{seen} records", min(1.0, seen / total) if total else 1.0)
    return found[0], found[1]
