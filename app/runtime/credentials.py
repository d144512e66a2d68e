"""Who may ask for what: the API keys as they stood a moment ago, and the rule for a service that has none.

A request costs no query: the keys are read anew every half second (`watch.py`). While the database is away the last
known keys hold; no score leaves then anyway, because none can be recorded.
"""

import ipaddress
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from app.clock import parse_timestamp
from app.database.keys import ApiKey, key_id_of
from app.errors import InvalidSettings


@dataclass(frozen=True, slots=True)
class Principal:
    name: str  # as the audit names it
    scopes: frozenset[str]


ANONYMOUS = Principal("nobody", frozenset())
LOOPBACK = Principal("loopback", frozenset({"score", "model:read"}))


class Keyring:
    def __init__(self, keys: Iterable[ApiKey] = ()) -> None:
        self._keys: dict[str, ApiKey] = {}
        # Once true, a credential is required. A key that expired or was revoked still counts, after a restart too.
        self.has_seen_keys = False
        self.replace(keys)

    def replace(self, keys: Iterable[ApiKey]) -> None:
        self._keys = {key.key_id: key for key in keys}
        self.has_seen_keys = self.has_seen_keys or bool(self._keys)

    def live(self, now: datetime) -> list[ApiKey]:
        return [key for key in self._keys.values() if key.is_live(now)]

    def next_expiry_seconds(self, now: datetime) -> float:
        """Until the next live key expires; infinite while none will."""
        ends = min((key.expires_at for key in self.live(now) if key.expires_at), default="")
        try:
            return (parse_timestamp(ends) - now).total_seconds()
        except ValueError:  # none, or a time that somebody edited
            return math.inf

    def principal(self, presented: str, now: datetime) -> Principal | None:
        """None: not the text of a key that is known, live and right."""
        key = self._keys.get(key_id_of(presented) or "")
        if key is None or not key.opens_with(presented, now):
            return None
        return Principal(key.key_id, key.scopes)


@lru_cache(maxsize=8)  # asked for every request while no key exists
def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_exposure(host: str, keyring: Keyring) -> None:
    """Without keys anybody who reaches the port may score, so only this machine may reach it."""
    if not keyring.has_seen_keys and not is_loopback(host):
        raise InvalidSettings(
            [
                "NORMALCY_HOST is not a loopback address and no API key exists: "
                "create one with `normalcy keys create`, or listen on 127.0.0.1."
            ]
        )
