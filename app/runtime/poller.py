"""Looks at the database twice a second, so that activations and keys made elsewhere hold here within two seconds."""

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import NamedTuple

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.clock import utc_now
from app.database.activations import Activation, activations_since, current_activations
from app.database.engine import Database
from app.database.keys import list_keys
from app.database.partitions import FEWEST_AHEAD, partitions_ahead
from app.errors import DatabaseUnavailable, NormalcyError
from app.observability import describe_failure
from app.runtime.credentials import Keyring
from app.runtime.loaded_models import LoadedModels

EVERY_SECONDS = 0.5
LOOK_AHEAD_SECONDS = 600.0  # months come slowly
RETRY_SECONDS = 5.0  # a version that could not be used may yet arrive on this machine's disk
NO_RECORD = "The activation has no record in the audit: somebody else put it into the database."


class Wanted(NamedTuple):
    """What is to be current at a site: the version that was activated, or the highest while none was."""

    site: str
    version: str | None = None
    sha256: str | None = None
    has_record: bool = True


@dataclass(frozen=True, slots=True)
class NotFollowed:
    """A current version that this process cannot use, and why. The one before it keeps serving, if there is one."""

    wanted: Wanted
    reason: str
    retry_at: float


class DatabasePoller:
    def __init__(self, database: Database, loaded_models: LoadedModels, keyring: Keyring) -> None:
        self._database, self._shelf, self._keyring = database, loaded_models, keyring
        self._seen = 0  # the highest id of an activation
        self._looking = asyncio.Lock()
        self._log = structlog.get_logger("watch")
        self._looked_ahead = -LOOK_AHEAD_SECONDS
        self.not_followed: dict[str, NotFollowed] = {}  # by site
        self.months_ahead = FEWEST_AHEAD  # for which the database has room

    async def begin(self) -> None:
        """The first look, before anything is answered. A site whose current version cannot be used is left out."""
        async with self._database.reading() as connection:
            self._keyring.replace(await list_keys(connection))
            active = await current_activations(connection)
        self._seen = max((activation.id for activation in active.values()), default=0)
        for site in sorted((await self._shelf.published()).keys() | active.keys()):
            await self._take_up(_wanted(active[site]) if site in active else Wanted(site))

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
            newest = {wanted.site: wanted for wanted in (*self._due(), *map(_wanted, fresh))}  # the later one wins
            for wanted in newest.values():
                if await self._take_up(wanted):
                    model = self._shelf.find_current(wanted.site).ref
                    self._log.info("version activated", **asdict(model))
            self._seen = max([self._seen, *(activation.id for activation in fresh)])

    async def _look_ahead(self, connection: AsyncConnection) -> None:
        if time.monotonic() - self._looked_ahead >= LOOK_AHEAD_SECONDS:
            self.months_ahead = await connection.run_sync(partitions_ahead, utc_now())
            self._looked_ahead = time.monotonic()

    def _due(self) -> list[Wanted]:
        now = time.monotonic()
        return [missed.wanted for missed in self.not_followed.values() if missed.retry_at <= now]

    async def _take_up(self, wanted: Wanted) -> bool:
        """Makes it current. False: it cannot be used, and is tried again later."""
        if not wanted.has_record:
            self._miss(wanted, NO_RECORD)
            return False
        try:
            version = wanted.version or await self._shelf.highest_version(wanted.site)
            model = await self._shelf.fetch(wanted.site, version, wanted.sha256)
        except NormalcyError as error:
            self._miss(wanted, str(error))
            return False
        except Exception as error:  # noqa: BLE001 - tried again like any other version that could not be used
            self._miss(wanted, "It could not be read.")
            self._log.error("reading a version failed", **describe_failure(error))
            return False
        self._shelf.make_current(model)
        self.not_followed.pop(wanted.site, None)
        return True

    def _miss(self, wanted: Wanted, reason: str) -> None:
        before = self.not_followed.get(wanted.site)
        self.not_followed[wanted.site] = NotFollowed(wanted, reason, time.monotonic() + RETRY_SECONDS)
        self._shelf.leave_out(wanted.site, reason)
        if before is None or (before.wanted, before.reason) != (wanted, reason):  # once, not at every try
            told = {"site": wanted.site, "version": wanted.version, "reason": reason}
            if wanted.site in self._shelf.not_served:
                self._log.error("site not served", **told)
            else:
                self._log.error("version not activated", **told)


def _wanted(activation: Activation) -> Wanted:
    return Wanted(activation.site, activation.version, activation.sha256, activation.has_record)
