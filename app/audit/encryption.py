"""Patients' values encrypted in the audit: an option, off by default, for sites that must be able to erase a patient.

The input and the output of a score are encrypted (AES-256-GCM) before the payload is hashed, so chains are verified
without any key, also after an erasure. Every patient reference has a data key of its own; scores without a reference
share one for each month. Data keys are stored in the database, wrapped under the master key, which is not in the
database. `normalcy audit erase` destroys the data key of a patient: what it encrypted is then unreadable for everybody.

A payload holds `input: {"encrypted": {"data_key", "text"}}` and `output: null`. A block of one owner is encrypted as a
whole and keeps `output.items`; a block of several patients has a list under `encrypted`, one part for each item.
"""

import asyncio
import base64
import hmac
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID, uuid4

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.audit.blocks import COLUMNS, ENCRYPTED, contents
from app.audit.recorded_request import SUBJECT, own_key
from app.audit.records import ITEMS, NewRecord
from app.clock import month_of
from app.database.data_keys import StoredKey, add_keys, erased_keys, keys_by_id, keys_of, some_key
from app.database.engine import Connection, Database
from app.database.stored_payload import deflate, inflate
from app.errors import AuditUnavailable, InvalidSettings, RecordErased, RecordUnreadable
from app.settings import Settings

Json = dict[str, Any]
Content = Literal["clear", "decrypted", "erased", "unreadable"]

KEY_FILE = "audit.key"
KEY_BYTES, NONCE_BYTES, UUID_BYTES = 32, 12, 16
CACHED_KEYS = 10_000
ATTEMPTS = 3  # to get the key of an owner whose key is destroyed at the same moment
BLOCK_ITEMS = 100  # of a block of several patients: each item is encrypted by itself, so it takes more room
DATA_KEY, TEXT = "data_key", "text"
# What a text was encrypted as: nothing can be moved from one table to another.
OF_RECORD, OF_ANSWER, OF_KEY = b"normalcy record v1", b"normalcy answer v1", b"normalcy data key v1"
SEALED_ANSWER = b"\0"  # the first byte of an encrypted answer; those in clear are JSON
WRONG_KEY = (
    "NORMALCY_AUDIT_KEY (or audit.key in the data folder) is not the key under which this database stores its data "
    "keys: use the same key for all replicas, or restore it."
)
NO_KEY = "NORMALCY_AUDIT_ENCRYPTION is on, and there is no key: set NORMALCY_AUDIT_KEY, or start the service once."


class DataKey(NamedTuple):
    key_id: UUID
    cipher: AESGCM

    def seal(self, content: bytes, purpose: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self.cipher.encrypt(nonce, content, purpose)

    def open(self, sealed: bytes, purpose: bytes) -> bytes:
        """Raises InvalidTag, or ValueError for what is too short."""
        return self.cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], purpose)


class MasterKey:
    def __init__(self, secret: bytes) -> None:
        self._wrapping = DataKey(UUID(int=0), AESGCM(hmac.digest(secret, b"normalcy wrapping key", "sha256")))
        self._blinding = hmac.digest(secret, b"normalcy blinding key", "sha256")

    def new_key(self, owner: str) -> StoredKey:
        key_id = uuid4()
        return StoredKey(key_id, owner, self._wrapping.seal(os.urandom(KEY_BYTES), _purpose(key_id, owner)))

    def unwrap(self, stored: StoredKey) -> DataKey:
        """Raises InvalidTag or ValueError if it was wrapped under another key, or for another owner."""
        opened = self._wrapping.open(stored.wrapped, _purpose(stored.key_id, stored.owner or ""))
        return DataKey(stored.key_id, AESGCM(opened))

    def blind(self, digest: bytes) -> bytes:
        """A digest from which a request cannot be guessed by trying values."""
        return hmac.digest(self._blinding, digest, "sha256")


def _purpose(key_id: UUID, owner: str) -> bytes:
    return OF_KEY + key_id.bytes + owner.encode()


def load_master_key(settings: Settings, create: bool = False) -> MasterKey | None:
    """The configured one, or that of the data folder. Raises InvalidSettings, NormalcyError if others can read it."""
    if settings.audit_key:
        return MasterKey(settings.audit_key.encode())
    file = settings.data_dir / KEY_FILE
    if file.exists() or (create and settings.audit_encryption == "on"):
        return MasterKey(own_key(file, "NORMALCY_AUDIT_KEY"))
    return None


def owner_of(subject: Mapping[str, str] | None, at: datetime) -> str:
    """Whose key encrypts: the patient's, or that of the month."""
    return f"{subject['key_id']}:{subject['hmac_sha256']}" if subject else month_of(at)


def owners_of(record: NewRecord) -> list[str]:
    """Of each item of a block, or of the record."""
    given = record.input or {}
    columns = given.get(COLUMNS)
    if columns is None:
        return [owner_of(given.get(SUBJECT), record.at)]
    key_ids, hashes = (columns.get(f"{SUBJECT}.{part}") for part in ("key_id", "hmac_sha256"))
    if hashes is None:
        return [owner_of(None, record.at)]
    pairs = zip(key_ids, hashes, strict=True)
    return [owner_of({"key_id": key_id, "hmac_sha256": h} if h else None, record.at) for key_id, h in pairs]


def encrypt(record: NewRecord, keys: Mapping[str, DataKey]) -> Iterator[NewRecord]:
    """The same record without anything about the patient in clear; a block of several patients as smaller blocks."""
    owners, output = owners_of(record), record.output or {}
    if len(set(owners)) == 1:
        sealed = _seal(keys[owners[0]], record.input, record.output)
        yield replace(record, input={ENCRYPTED: sealed}, output=_clear_output(output))
        return
    plain = (record.input, output, output[ITEMS])
    recorded_input, recorded_output, items = (msgspec.json.decode(msgspec.json.encode(value)) for value in plain)
    item_contents = contents(recorded_input, recorded_output)
    parts = [_seal(keys[owner], *each) for owner, each in zip(owners, item_contents, strict=True)]
    for start in range(0, len(parts), BLOCK_ITEMS):
        some = items[start : start + BLOCK_ITEMS]
        sealed_items = {ENCRYPTED: parts[start : start + BLOCK_ITEMS]}
        yield replace(record, item=some[0], input=sealed_items, output={ITEMS: some})


def _clear_output(output: Mapping[str, Any]) -> Json | None:
    """What stays in clear."""
    return {ITEMS: output[ITEMS]} if ITEMS in output else None


def _seal(key: DataKey, recorded_input: object, recorded_output: object) -> Json:
    text = msgspec.json.encode({"input": recorded_input, "output": recorded_output}, order="sorted")
    content = deflate(text)
    return {DATA_KEY: key.key_id, TEXT: base64.b64encode(key.seal(content, OF_RECORD)).decode()}


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """What is known about the data keys that some records name."""

    keys: Mapping[UUID, DataKey]
    erased: frozenset[UUID] = frozenset()

    def decrypt(self, payload: Json) -> Json:
        """With `content`, and with its input and output if they are encrypted as a whole. Whatever it holds."""
        sealed = _sealed(payload)
        if not isinstance(sealed, dict):
            return {"content": "clear", **payload}
        key_id = _key_id(sealed)
        content: Content = "erased" if key_id in self.erased else "unreadable"
        hidden = {**payload, "input": None, "output": _clear_output(payload.get("output") or {}), "content": content}
        try:
            text = base64.b64decode(sealed[TEXT], validate=True)
            opened = msgspec.json.decode(inflate(self.keys[key_id].open(text, OF_RECORD)))  # type: ignore[index]
            return {**payload, "input": opened["input"], "output": opened["output"], "content": "decrypted"}
        except (InvalidTag, LookupError, TypeError, ValueError):
            return hidden


def named_keys(payload: Json) -> set[UUID]:
    """The data keys that a payload names. It may hold anything."""
    sealed = _sealed(payload)
    found = {_key_id(part) for part in (sealed if isinstance(sealed, list) else [sealed])}
    return {key_id for key_id in found if key_id is not None}


def _sealed(payload: Json) -> object:
    given = payload.get("input")
    return given[ENCRYPTED] if isinstance(given, dict) and given.keys() == {ENCRYPTED} else None


def _key_id(part: object) -> UUID | None:
    try:
        return UUID(part[DATA_KEY])  # type: ignore[index]
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


class DataKeys:
    """Of this process. Keys for writing are cached; for reading they are looked up, so an erasure counts at once."""

    def __init__(self, database: Database, master: MasterKey | None, encrypts: bool) -> None:
        self._database, self._master, self.encrypts = database, master, encrypts
        self._cached: dict[str, DataKey] = {}  # by owner
        self._erased: frozenset[UUID] = frozenset()

    async def check(self) -> None:
        """Raises InvalidSettings if the master key is not that of this database."""
        if self._master is None:
            return
        async with self._database.reading() as connection:
            stored = await some_key(connection)
        try:
            if stored is not None:
                self._master.unwrap(stored)
        except (InvalidTag, ValueError) as error:
            raise InvalidSettings([WRONG_KEY]) from error

    async def get(self, owners: Iterable[str], deadline: float | None = None) -> Mapping[str, DataKey]:
        """The key of every owner, created if there is none. `deadline` is in the time of the event loop.

        Raises AuditUnavailable or DatabaseUnavailable.
        """
        wanted = set(owners)
        found = {owner: key for owner in wanted if (key := self._cached.get(owner)) is not None}
        if len(found) == len(wanted):
            return found
        try:
            async with asyncio.timeout_at(deadline):
                return found | await self._fetch(wanted - found.keys())
        except TimeoutError:
            raise AuditUnavailable from None

    async def encrypted(self, records: Sequence[NewRecord], deadline: float) -> Sequence[NewRecord]:
        """What to write instead of these records of measurements: the records themselves if the option is off."""
        if not self.encrypts:
            return records
        keys = await self.get((owner for record in records for owner in owners_of(record)), deadline)
        return [each for record in records for each in encrypt(record, keys)]

    async def find(self, connection: Connection, key_ids: set[UUID]) -> FoundKeys:
        """For reading."""
        keys, erased = {}, set()
        for stored in await keys_by_id(connection, key_ids) if key_ids else ():
            if stored.erased_at is not None:
                erased.add(stored.key_id)
                continue
            try:
                if self._master is not None:
                    keys[stored.key_id] = self._master.unwrap(stored)
            except (InvalidTag, ValueError):  # the record is then unreadable, and not erased
                continue
        return FoundKeys(keys, frozenset(erased))

    async def refresh(self, connection: Connection) -> None:
        """Forget the keys that were destroyed. The poller calls it."""
        if not self.encrypts:
            return
        erased = frozenset(key.key_id for key in await erased_keys(connection))
        if erased == self._erased:
            return
        self._erased = erased
        self._cached = {owner: key for owner, key in self._cached.items() if key.key_id not in self._erased}

    def seal_answer(self, key: DataKey, answer: bytes, name: bytes) -> bytes:
        """`name` is the row of the table, so that nobody can exchange two answers."""
        return SEALED_ANSWER + key.key_id.bytes + key.seal(answer, OF_ANSWER + name)

    async def open_answer(self, stored: bytes, name: bytes) -> bytes:
        """Raises RecordErased or RecordUnreadable."""
        if not stored.startswith(SEALED_ANSWER):
            return stored
        key_id = UUID(bytes=stored[1 : 1 + UUID_BYTES])
        async with self._database.reading() as connection:
            found = await self.find(connection, {key_id})
        if key_id in found.erased:
            raise RecordErased
        try:
            return found.keys[key_id].open(stored[1 + UUID_BYTES :], OF_ANSWER + name)
        except (InvalidTag, LookupError, ValueError) as error:
            raise RecordUnreadable from error

    def blind(self, digest: bytes) -> bytes:
        """Unchanged if there is no master key."""
        return self._master.blind(digest) if self._master is not None else digest

    async def _fetch(self, owners: set[str]) -> dict[str, DataKey]:
        found: dict[str, DataKey] = {}
        for _ in range(ATTEMPTS):
            stored = await self._stored(owners - found.keys())
            found |= {key.owner: self._unwrap(key) for key in stored if key.owner and key.key_id not in self._erased}
            if len(found) == len(owners):
                self._cached.update(found)
                while len(self._cached) > CACHED_KEYS:
                    self._cached.pop(next(iter(self._cached)))
                return found
        raise AuditUnavailable

    async def _stored(self, owners: set[str]) -> list[StoredKey]:
        if self._master is None:
            raise InvalidSettings([NO_KEY])
        async with self._database.reading() as connection:
            stored = await keys_of(connection, owners)
        missing = owners - {key.owner for key in stored}
        if not missing:
            return stored
        async with self._database.writing() as connection:
            await add_keys(connection, [self._master.new_key(owner) for owner in sorted(missing)])
            return stored + await keys_of(connection, missing)

    def _unwrap(self, stored: StoredKey) -> DataKey:
        if self._master is None:
            raise InvalidSettings([NO_KEY])
        try:
            return self._master.unwrap(stored)
        except (InvalidTag, ValueError) as error:
            raise AuditUnavailable(WRONG_KEY) from error


async def open_data_keys(settings: Settings, database: Database, create: bool = False) -> DataKeys:
    """`create`: the master key, if the option is on and there is none. Raises InvalidSettings."""
    keys = DataKeys(database, load_master_key(settings, create), settings.audit_encryption == "on")
    await keys.check()
    return keys
