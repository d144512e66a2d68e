"""API keys: `nsk_<8 id>_<43 secret>`, shown once, stored as a hash.

The secret is 32 random bytes, so a fast hash is enough: it cannot be guessed.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Row, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.clock import parse_timestamp, timestamp
from app.database.tables import api_keys, key_uses
from app.domain.scopes import Scope
from app.errors import UnknownKey

EXPIRY_NOTICE = timedelta(days=30)  # readiness warns this long before a key expires
ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: people read ids aloud
ID_LENGTH = 8
KEY_PREFIX = "nsk_"
KEY_PATTERN = re.compile(KEY_PREFIX + r"([a-z0-9]{8})_[A-Za-z0-9_-]{43}", re.ASCII)
MAX_NAME_LENGTH = 128
# Of several processes, the one that saw the latest use wins.
SAVE_USE = text("""
    INSERT INTO key_uses (key_id, last_used_at) VALUES (:key_id, :at)
    ON CONFLICT (key_id) DO UPDATE SET last_used_at = :at WHERE key_uses.last_used_at < :at
""")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is stored: whom it is for and what it may do, never the secret."""

    key_id: str
    name: str
    secret_sha256: bytes
    scopes: frozenset[str]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    replaces: str | None = None  # the id of the key before it, if it was rotated

    @property
    def principal(self) -> str:
        """As the audit records it: the id, which has no space, and the name. Somebody may have edited the name."""
        return f"{self.key_id} {''.join(filter(str.isprintable, self.name))[:MAX_NAME_LENGTH]}"

    def is_live(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or timestamp(now) < self.expires_at)

    def expires_soon(self, now: datetime) -> bool:
        return self.is_live(now) and self.expires_at is not None and self.expires_at <= timestamp(now + EXPIRY_NOTICE)

    def has_secret(self, presented: str) -> bool:
        """Compared in constant time, so that response times reveal nothing about a nearly right secret."""
        return hmac.compare_digest(_digest(presented), self.secret_sha256)


class NewKey(NamedTuple):
    text: str  # shown once
    key: ApiKey


def make_key(name: str, scopes: Iterable[str], now: datetime, expires: datetime | None = None) -> NewKey:
    key_id = "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH))
    text = f"{KEY_PREFIX}{key_id}_{secrets.token_urlsafe(32)}"
    granted = frozenset(scopes)
    if not granted or not granted <= set(Scope):
        raise ValueError(f"scopes are one or more of {', '.join(Scope)}")
    until = timestamp(expires) if expires else None
    return NewKey(text, ApiKey(key_id, name, _digest(text), granted, timestamp(now), until, None))


def make_successor(key: ApiKey, now: datetime) -> NewKey:
    """A key with the same name, scopes and days until it expires."""
    expires = now + (parse_timestamp(key.expires_at) - parse_timestamp(key.created_at)) if key.expires_at else None
    text, new = make_key(key.name, key.scopes, now, expires)
    return NewKey(text, replace(new, replaces=key.key_id))


def key_id_of(presented: str) -> str | None:
    """The id in the text of a key, or None if it is not the text of a key."""
    match = KEY_PATTERN.fullmatch(presented)
    return match[1] if match else None


async def save_key(connection: AsyncConnection, key: ApiKey) -> None:
    values = asdict(key) | {"scopes": " ".join(sorted(key.scopes))}
    await connection.execute(insert(api_keys).values(values))


async def find_key(connection: AsyncConnection, key_id: str) -> ApiKey | None:
    row = (await connection.execute(select(api_keys).where(api_keys.c.key_id == key_id))).one_or_none()
    return _key(row) if row else None


async def list_keys(connection: AsyncConnection) -> list[ApiKey]:
    """All keys, oldest first, including revoked and expired ones."""
    return [_key(row) for row in await connection.execute(select(api_keys).order_by(api_keys.c.created_at))]


async def revoke_key(connection: AsyncConnection, key_id: str, now: datetime) -> ApiKey:
    """Revoke a key immediately and permanently. Revoking it again leaves the first time unchanged."""
    live = (api_keys.c.key_id == key_id, api_keys.c.revoked_at.is_(None))
    await connection.execute(update(api_keys).where(*live).values(revoked_at=timestamp(now)))
    key = await find_key(connection, key_id)
    if key is None:
        raise UnknownKey(key_id)
    return key


async def lock_key(connection: AsyncConnection, key_id: str) -> ApiKey:
    """Until the transaction ends nobody else can change it. Raises UnknownKey."""
    query = select(api_keys).where(api_keys.c.key_id == key_id).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise UnknownKey(key_id)
    return _key(row)


async def successor_of(connection: AsyncConnection, key_id: str) -> str | None:
    """The id of the key that replaces it."""
    found: str | None = await connection.scalar(select(api_keys.c.key_id).where(api_keys.c.replaces == key_id))
    return found


async def end_key(connection: AsyncConnection, key: ApiKey, expires_at: str) -> ApiKey:
    """Let it expire at that time."""
    await connection.execute(update(api_keys).where(api_keys.c.key_id == key.key_id).values(expires_at=expires_at))
    return replace(key, expires_at=expires_at)


async def save_uses(connection: AsyncConnection, uses: Mapping[str, str]) -> None:
    """When keys were last used, by id. In the order of the ids, so that two processes never wait for each other."""
    await connection.execute(SAVE_USE, [{"key_id": key_id, "at": at} for key_id, at in sorted(uses.items())])


async def last_uses(connection: AsyncConnection) -> dict[str, str]:
    return {row.key_id: row.last_used_at for row in await connection.execute(select(key_uses))}


def _key(row: Row[tuple[object, ...]]) -> ApiKey:
    values = dict(row._mapping)
    return ApiKey(**values | {"scopes": frozenset(values["scopes"].split())})


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
