"""Reads API keys, activations and erasures from the database twice a second, so that a change made elsewhere applies
here soon.

The contract allows two seconds.
"""

import asyncio
import time
from dataclasses import asdict, astuple, dataclass
from typing import NamedTuple

import structlog

from app.audit.changes import has_key_on_record
from app.audit.encryption import DataKeys
from app.clock import utc_now
from app.database.activations import Activation, activations_since, current_activations
from app.database.checkpoints import may_read_audit
from app.database.engine import Connection, Database
from app.database.keys import list_keys
from app.database.migrate import MIN_MONTHS_AHEAD, partitions_ahead
from app.errors import DatabaseUnavailable, NormalcyError
from app.inference.executor import LoadedModel
from app.observability import describe_failure
from app.runtime.credentials import Keyring
from app.runtime.models import LoadedModels

INTERVAL_SECONDS = 0.5
PARTITION_CHECK_SECONDS = 600.0
RETRY_SECONDS = 5.0  # a version that cannot be used may still be copied to this machine's disk
NO_RECORD = "The activation has no record in the audit: it was not written by this program."
DELETED = (
    "The audit has records of API keys, and the database has no key: somebody deleted them. Requests need a key: "
    "`normalcy keys create`. `normalcy audit verify` names those that are missing."
)
REMEDY = "To serve {site}, repair that version or activate another one: `normalcy models activate {site} VERSION`."


class WantedVersion(NamedTuple):
    """The version that should be current at a site: the activated one, or the highest while none was activated."""

    site: str
    version: str | None = None
    sha256: str | None = None
    has_record: bool = True

    def is_version_of(self, model: LoadedModel | None) -> bool:
        return model is not None and (self.site, self.version, self.sha256) == astuple(model.ref)


@dataclass(frozen=True, slots=True)
class UnusableVersion:
    """A version that should be current and cannot be used here. The earlier one stays current, if there is one."""

    wanted: WantedVersion
    reason: str
    retry_at: float  # time.monotonic


class DatabasePoller:
    def __init__(
        self, database: Database, loaded_models: LoadedModels, keyring: Keyring, data_keys: DataKeys | None = None
    ) -> None:
        self._database, self._loaded_models, self._keyring = database, loaded_models, keyring
        self._data_keys = data_keys
        self._last_activation = 0  # the highest id seen
        self._refreshing = asyncio.Lock()
        self._log = structlog.get_logger("poller")
        self._partitions_checked = -PARTITION_CHECK_SECONDS
        self.unusable: dict[str, UnusableVersion] = {}  # by site
        self.months_ahead = MIN_MONTHS_AHEAD  # for which the audit has partitions

    async def start(self) -> None:
        """Reads everything once, before the first request. A site whose current version is unusable is not served."""
        async with self._database.reading() as connection:
            self._keyring.replace(await list_keys(connection))
            await self._look_for_deleted_keys(connection)
            active = await current_activations(connection)
        self._last_activation = max((activation.id for activation in active.values()), default=0)
        for site in sorted((await self._loaded_models.published()).keys() | active.keys()):
            await self._make_current(_wanted(active[site]) if site in active else WantedVersion(site))

    async def _look_for_deleted_keys(self, connection: Connection) -> None:
        """Deleting all keys must not let anybody score without one. Keys seen by this process need no such check."""
        if self._keyring.has_seen_keys or not await may_read_audit(connection):
            return
        if await has_key_on_record(connection):
            self._keyring.require_credentials()
            self._log.error("API keys deleted", consequence=DELETED)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            try:
                await self.refresh()
            except DatabaseUnavailable:
                continue  # the audit writer reports it; loaded models and known keys stay in use
            except Exception as error:  # noqa: BLE001 - after any other failure, too, polling must go on
                self._log.error("refresh failed", **describe_failure(error))

    async def refresh(self, just_loaded: LoadedModel | None = None) -> None:
        """Reads keys and new activations, and retries versions that could not be used.

        `just_loaded` is the model of an activation that this process committed. It is taken as it is, so that the
        activation cannot fail here any more, even if its files have changed since.
        """
        async with self._refreshing:
            async with self._database.reading() as connection:
                keys = await list_keys(connection)
                activations = await activations_since(connection, self._last_activation)
                await self._count_partitions(connection)
                if self._data_keys is not None:
                    await self._data_keys.refresh(connection)
            self._keyring.replace(keys)
            newest = {wanted.site: wanted for wanted in (*self._to_retry(just_loaded), *map(_wanted, activations))}
            for wanted in newest.values():
                if await self._make_current(wanted, just_loaded):
                    self._log.info("version activated", **asdict(self._loaded_models.find_current(wanted.site).ref))
            self._last_activation = max([self._last_activation, *(activation.id for activation in activations)])

    async def _count_partitions(self, connection: Connection) -> None:
        if time.monotonic() - self._partitions_checked >= PARTITION_CHECK_SECONDS:
            self.months_ahead = await partitions_ahead(connection, utc_now())
            self._partitions_checked = time.monotonic()

    def _to_retry(self, just_loaded: LoadedModel | None) -> list[WantedVersion]:
        now = time.monotonic()
        unusable = self.unusable.values()
        return [each.wanted for each in unusable if each.retry_at <= now or each.wanted.is_version_of(just_loaded)]

    async def _make_current(self, wanted: WantedVersion, just_loaded: LoadedModel | None = None) -> bool:
        """False if it cannot be used; it is then tried again later."""
        if not wanted.has_record:
            self._reject(wanted, NO_RECORD)
            return False
        try:
            if just_loaded is not None and wanted.is_version_of(just_loaded):
                model = just_loaded
            else:
                version = wanted.version or await self._loaded_models.highest_version(wanted.site)
                model = await self._loaded_models.fetch(wanted.site, version, wanted.sha256)
        except NormalcyError as error:
            self._reject(wanted, str(error))
            return False
        except Exception as error:  # noqa: BLE001 - retried like any other version that cannot be used
            self._reject(wanted, "It could not be read.")
            self._log.error("reading a version failed", **describe_failure(error))
            return False
        self._loaded_models.make_current(model)
        self.unusable.pop(wanted.site, None)
        return True

    def _reject(self, wanted: WantedVersion, problem: str) -> None:
        reason = f"{problem} {REMEDY.format(site=wanted.site)}"
        before = self.unusable.get(wanted.site)
        self.unusable[wanted.site] = UnusableVersion(wanted, reason, time.monotonic() + RETRY_SECONDS)
        self._loaded_models.mark_not_served(wanted.site, reason)
        if before is None or (before.wanted, before.reason) != (wanted, reason):  # logged once, not at every retry
            details = {"site": wanted.site, "version": wanted.version, "reason": reason}
            if wanted.site in self._loaded_models.not_served:
                self._log.error("site not served", **details)
            else:
                self._log.error("version not activated", **details)


def _wanted(activation: Activation) -> WantedVersion:
    return WantedVersion(activation.site, activation.version, activation.sha256, activation.has_record)
