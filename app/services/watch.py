"""Looks at the database twice a second, so that activations and keys made elsewhere hold here within two seconds."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.activations import Activation, activations_since, current_activations
from app.database.engine import Database
from app.database.keys import list_keys
from app.database.partitions import FEWEST_AHEAD, partitions_ahead
from app.database.times import utc_now
from app.errors import DatabaseUnavailable, NormalcyError
from app.observability import describe_failure
from app.services.credentials import Keyring
from app.services.shelf import Shelf

EVERY_SECONDS = 0.5
LOOK_AHEAD_SECONDS = 600.0  # months come slowly
RETRY_SECONDS = 5.0  # a version that could not be used may yet arrive on this machine's disk


@dataclass(frozen=True, slots=True)
class NotFollowed:
    """An activation on record that this process could not follow, and why. The version before it keeps serving."""

    activation: Activation
    reason: str
    retry_at: float


class Watcher:
    def __init__(self, database: Database, shelf: Shelf, keyring: Keyring) -> None:
        self._database, self._shelf, self._keyring = database, shelf, keyring
        self._seen = 0  # the highest id of an activation
        self._looking = asyncio.Lock()
        self._log = structlog.get_logger("watch")
        self._looked_ahead = -LOOK_AHEAD_SECONDS
        self.not_followed: dict[str, NotFollowed] = {}  # by site
        self.months_ahead = FEWEST_AHEAD  # for which the database has room

    async def begin(self) -> None:
        """The first look, before anything is answered: a model on record that cannot be used refuses the start."""
        async with self._database.reading() as connection:
            self._keyring.replace(await list_keys(connection))
            active = await current_activations(connection)
        self._seen = max((activation.id for activation in active.values()), default=0)
        published = await self._shelf.published()
        for site in sorted(published.keys() | active.keys()):
            activation = active.get(site)
            wanted = (activation.version, activation.sha256) if activation else (published[site][-1], None)
            self._shelf.make_current(await self._shelf.fetch(site, *wanted))

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            try:
                await self.look()
            except DatabaseUnavailable:
                continue  # the audit writer tells of it; what is loaded keeps serving
            except Exception as error:  # noqa: BLE001 - a defect here must not leave the service blind for good
                self._log.error("look failed", **describe_failure(error))

    async def look(self) -> None:
        async with self._looking:
            async with self._database.reading() as connection:
                keys = await list_keys(connection)
                fresh = await activations_since(connection, self._seen)
                await self._look_ahead(connection)
            self._keyring.replace(keys)
            await self._follow([*self._due(), *fresh])

    async def _look_ahead(self, connection: AsyncConnection) -> None:
        if time.monotonic() - self._looked_ahead >= LOOK_AHEAD_SECONDS:
            self.months_ahead = await connection.run_sync(partitions_ahead, utc_now())
            self._looked_ahead = time.monotonic()

    def _due(self) -> list[Activation]:
        now = time.monotonic()
        return [missed.activation for missed in self.not_followed.values() if missed.retry_at <= now]

    async def _follow(self, activations: Iterable[Activation]) -> None:
        newest = {activation.site: activation for activation in activations}  # the later one of a site wins
        for site, activation in newest.items():
            try:
                model = await self._shelf.fetch(site, activation.version, activation.sha256)
            except NormalcyError as error:
                self._miss(activation, str(error))
                continue
            except Exception as error:  # noqa: BLE001 - tried again like any other version that could not be used
                self._miss(activation, "It could not be read.")
                self._log.error("reading a version failed", **describe_failure(error))
                continue
            finally:
                self._seen = max(self._seen, activation.id)
            self._shelf.make_current(model)
            self.not_followed.pop(site, None)
            self._log.info("version activated", site=site, version=activation.version, sha256=activation.sha256)

    def _miss(self, activation: Activation, reason: str) -> None:
        self.not_followed[activation.site] = NotFollowed(activation, reason, time.monotonic() + RETRY_SECONDS)
        self._log.error("version not activated", site=activation.site, version=activation.version, reason=reason)
