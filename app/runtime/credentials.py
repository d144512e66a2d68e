"""Who may do what: API keys and callers, and the rights of the service's own database login.

A request causes no database query: the poller reads all keys twice a second. While the database is unavailable the
last known keys stay valid; nothing is scored then anyway, because no score can be recorded.
"""

import asyncio
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import structlog

from app.audit.records import Kind, NewRecord
from app.clock import parse_timestamp, timestamp
from app.database.engine import Database
from app.database.keys import ApiKey, key_id_of, save_uses
from app.database.login_rights import LoginRights, login_rights
from app.domain.scopes import Scope
from app.errors import DatabaseNotReady, InvalidSettings
from app.observability import describe_failure
from app.settings import Settings, is_loopback

OK = 200
OTHER_ROLES = "Other roles have rights on the audit's tables, or run code in our database: see the log."
OWNER_LOGIN = (
    "NORMALCY_ALLOW_OWNER_LOGIN is true: whoever takes over the service can change and remove records, keys and "
    "activations, and only a checkpoint stored elsewhere will show it."
)
NO_KEY = ApiKey("", "", bytes(32), frozenset(), "", None, None)  # an unknown id takes as long as a wrong secret
SAVE_USES_SECONDS = 60.0
MAX_LISTED = 5  # reasons in one message


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated identity and its scopes."""

    name: str  # as the audit records it
    scopes: frozenset[str]


ANONYMOUS = Principal("nobody", frozenset())
LOOPBACK = Principal("loopback", frozenset({Scope.SCORE, Scope.MODEL_READ}))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, to which route, and by when its answer must be recorded."""

    principal: str
    request_id: str
    route: str
    deadline: float  # event-loop time

    def new_record(self, kind: Kind, at: datetime, **fields: Any) -> NewRecord:
        """The audit record of a successful request."""
        return NewRecord(
            kind=kind,
            at=at,
            principal=self.principal,
            route=self.route,
            status=OK,
            request_id=self.request_id,
            **fields,
        )


class KeyRefusal(StrEnum):
    """Why a key is not accepted. Counted, never sent: the caller learns only that it is not valid."""

    WRONG = "key_wrong"  # an unknown id, or a wrong secret
    EXPIRED = "key_expired"
    REVOKED = "key_revoked"


class Keyring:
    """The API keys as last read from the database."""

    def __init__(self, keys: Iterable[ApiKey] = ()) -> None:
        self._keys: dict[str, ApiKey] = {}
        # Once true, a credential is required. Expired and revoked keys count as well, also after a restart.
        self.has_seen_keys = False
        self.replace(keys)

    def replace(self, keys: Iterable[ApiKey]) -> None:
        self._keys = {key.key_id: key for key in keys}
        self.has_seen_keys = self.has_seen_keys or bool(self._keys)

    def require_credentials(self) -> None:
        """Although no key is left."""
        self.has_seen_keys = True

    def live(self, now: datetime) -> list[ApiKey]:
        return [key for key in self._keys.values() if key.is_live(now)]

    def next_expiry_seconds(self, now: datetime) -> float:
        """Seconds until the next live key expires; infinite if none will."""
        first = min((key.expires_at for key in self.live(now) if key.expires_at), default="")
        try:
            return (parse_timestamp(first) - now).total_seconds()
        except ValueError:  # no such key, or a time edited by hand
            return math.inf

    def principal(self, presented: str, now: datetime) -> Principal | KeyRefusal:
        """The principal, if the text is a known, live key with the right secret."""
        key = self._keys.get(key_id_of(presented) or "", NO_KEY)
        if not key.has_secret(presented):
            return KeyRefusal.WRONG
        if not key.is_live(now):
            return KeyRefusal.REVOKED if key.revoked_at else KeyRefusal.EXPIRED
        return Principal(key.principal, key.scopes)


class KeyUses:
    """When keys were last used. Written once a minute, so that a request causes no query and waits for nothing."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self._clock = database, clock
        self._unsaved: dict[str, datetime] = {}  # by the id of the key

    def note(self, presented: str) -> None:
        """A key that was accepted."""
        self._unsaved[key_id_of(presented) or ""] = self._clock()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(SAVE_USES_SECONDS)
            await self.save()

    async def save(self) -> None:
        """Never raises, because no response depends on it. What could not be written is tried again the next time."""
        uses, self._unsaved = self._unsaved, {}
        if not uses:
            return
        try:
            async with self._database.writing() as connection:
                await save_uses(connection, {key_id: timestamp(at) for key_id, at in uses.items()})
        except Exception as error:  # noqa: BLE001 - whatever fails, keys stay valid
            self._unsaved = uses | self._unsaved
            structlog.get_logger("keys").warning("last use of keys not written", **describe_failure(error))


def check_exposure(host: str, is_credential_required: bool) -> None:
    """Otherwise anyone who reaches the port may score, so the port must not be reachable from other machines."""
    if not is_credential_required and not is_loopback(host):
        raise InvalidSettings(
            [
                "NORMALCY_HOST is not a loopback address and no API key exists: create one with "
                "`normalcy keys create`, set NORMALCY_JWT_ISSUERS_FILE, or listen on 127.0.0.1."
            ]
        )


async def check_login(database: Database, settings: Settings) -> tuple[dict[str, str], ...]:
    """Warnings for readiness. Raises DatabaseNotReady if the PostgreSQL login has more rights than the service needs.

    A service that was taken over can do what its login can do. With the login of `deploy/create-service-login.sh` that
    is to add records; with the owner's login it is to rewrite the audit.
    """
    if database.dialect == "sqlite":
        return ()  # there are no logins: whoever can read the file can write it
    async with database.reading() as connection:
        rights = await login_rights(connection)
    if rights.excess and not settings.allow_owner_login:
        raise DatabaseNotReady(
            f"The service's PostgreSQL login can do more than add and read records: {_listed(rights.excess)}. "
            "Create a login with deploy/create-service-login.sh (it also runs REVOKE TEMPORARY ON DATABASE … FROM "
            "PUBLIC), or set NORMALCY_ALLOW_OWNER_LOGIN=true and accept that the service could change its own records."
        )
    return (*_owner_login(rights), *_other_roles(rights))


def _owner_login(rights: LoginRights) -> tuple[dict[str, str], ...]:
    if not rights.excess:
        return ()
    structlog.get_logger("start").warning("owner login", consequence=OWNER_LOGIN, rights=_listed(rights.excess))
    return ({"code": "owner_login", "message": OWNER_LOGIN},)


def _other_roles(rights: LoginRights) -> tuple[dict[str, str], ...]:
    """Named in the log only, because readiness needs no credential."""
    if not rights.of_others:
        return ()
    structlog.get_logger("start").warning("rights of other roles", roles=_listed(rights.of_others))
    return ({"code": "rights_of_other_roles", "message": OTHER_ROLES},)


def _listed(reasons: tuple[str, ...]) -> str:
    more = f"; and {len(reasons) - MAX_LISTED} more" if len(reasons) > MAX_LISTED else ""
    return "; ".join(reasons[:MAX_LISTED]) + more
