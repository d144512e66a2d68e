"""API keys: `nsk_<8 id>_<43 secret>`, shown once, stored as a hash.

The secret is 32 random bytes, so a fast hash is enough: it cannot be guessed.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Row, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.clock import timestamp
from app.database.tables import api_keys
from app.domain.scopes import Scope
from app.errors import UnknownKey

EXPIRY_NOTICE = timedelta(days=30)  # readiness warns this long before a key expires
ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: people read ids aloud
ID_LENGTH = 8
KEY_PREFIX = "nsk_"
KEY_PATTERN = re.compile(KEY_PREFIX + r"([a-z0-9]{8})_[A-Za-z0-9_-]{43}", re.ASCII)


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


def _key(row: Row[tuple[object, ...]]) -> ApiKey:
    values = dict(row._mapping)
    return ApiKey(**values | {"scopes": frozenset(values["scopes"].split())})


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
