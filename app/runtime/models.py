"""The models in memory: reading a version from disk, checking it, and knowing which one is current for each site.

A model in memory never changes, it is only replaced. A request therefore keeps the model that it found on arrival.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.domain.query import ScoreQuery
from app.errors import InvalidArtefact, InvalidSettings, NoModelLoaded, SiteNotServed, UnknownSite
from app.inference.executor import LoadedModel, load_on_numpy
from app.inference.golden import check_model
from app.inference.scoring import score
from app.schemas.requests import CURRENT
from app.settings import Settings
from app.store import StoredModel, highest_version, load, sites, versions_of
from app.store.artefact import GOLDEN, SUMS

MAX_OTHER_VERSIONS = 16  # in memory besides the current ones; each takes some 100 kB
WRONG_DIGEST = (
    "the digest of {site} {version} is not the one on record: these are not the files that were published. "
    "Restore the original files."
)

SiteVersion = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Backend:
    """What computes predictions in this process."""

    name: Literal["numpy", "tensorflow"]
    device: str
    load: Callable[[StoredModel], LoadedModel]


def choose_backend(settings: Settings) -> Backend:
    """Raises InvalidSettings if the backend or device is not there: there is no silent fall-back to another."""
    if settings.backend == "numpy":
        if settings.device == "GPU":
            raise InvalidSettings(["NORMALCY_DEVICE=GPU needs NORMALCY_BACKEND=tensorflow: numpy computes on the CPU."])
        return Backend("numpy", "CPU", load_on_numpy)
    try:
        from app.inference import tensorflow_executor
    except ModuleNotFoundError as error:
        raise InvalidSettings(["NORMALCY_BACKEND=tensorflow needs TensorFlow, which is not installed here."]) from error
    device = tensorflow_executor.choose_device(settings.device)
    return Backend("tensorflow", device, lambda stored: tensorflow_executor.load_on_tensorflow(stored, device))


def check_models_dir(folder: Path) -> None:
    """Raises InvalidSettings if the store is not there: a mistyped path must not look like an empty store."""
    if not folder.is_dir():
        raise InvalidSettings([f"NORMALCY_MODELS_DIR names {folder.absolute()}, which is not a folder."])


def load_model(models_dir: Path, backend: Backend, site: str, version: str, sha256: str | None = None) -> LoadedModel:
    """Read a version, verify its digests, run its golden cases on this backend, and score once to warm up.

    `sha256` is the digest on record, if there is one. Raises UnknownSite, UnknownVersion or InvalidArtefact.
    """
    model = backend.load(load(models_dir, site, version))
    check_digest(model, sha256)
    result = check_model(model)
    if result.failed:
        failures = f"{result.failed} of {result.cases} golden cases are not reproduced"
        raise InvalidArtefact(GOLDEN, f"{failures} on {backend.name}, {backend.device}.")
    score(model, [ScoreQuery(case.patient, case.diameter_mm) for case in model.stored.golden[:1]])
    return model


def check_digest(model: LoadedModel, sha256: str | None) -> None:
    """Raises InvalidArtefact if there is a digest on record, and it is another one."""
    if sha256 not in (None, model.ref.sha256):
        raise InvalidArtefact(SUMS, WRONG_DIGEST.format(site=model.ref.site, version=model.ref.version))


class LoadedModels:
    """The current model of each site, and other versions that were requested recently.

    Use it from one event loop. Models are read from disk in threads.
    """

    def __init__(self, models_dir: Path, backend: Backend) -> None:
        self.models_dir, self.backend = models_dir, backend
        self._current: dict[str, LoadedModel] = {}
        self._not_served: dict[str, str] = {}  # site -> why its current version cannot be used
        self._others: dict[SiteVersion, LoadedModel] = {}  # least recently used first
        self._loading: dict[SiteVersion, asyncio.Task[LoadedModel]] = {}

    @property
    def current(self) -> Mapping[str, LoadedModel]:
        """Site -> its current model."""
        return self._current

    @property
    def loaded(self) -> list[LoadedModel]:
        """Every model in memory, by site; the current one first."""
        models = [*self._current.values(), *self._others.values()]
        return sorted(models, key=lambda model: model.ref.site)

    @property
    def not_served(self) -> Mapping[str, str]:
        """Site -> why its current version cannot be used."""
        return self._not_served

    async def find(self, site: str, version: str = CURRENT) -> LoadedModel:
        return self.find_current(site) if version == CURRENT else await self.fetch(site, version)

    def find_current(self, site: str) -> LoadedModel:
        """Raises SiteNotServed, UnknownSite or NoModelLoaded."""
        model = self._current.get(site)
        if model is not None:
            return model
        if site in self._not_served:
            raise SiteNotServed(site, self._not_served[site])
        raise UnknownSite(site) if self._current else NoModelLoaded

    async def fetch(self, site: str, version: str, sha256: str | None = None) -> LoadedModel:
        """A version from memory or, once for all concurrent callers, from disk.

        `sha256` is the digest on record, if there is one. Raises what `load_model` raises, and InvalidArtefact if the
        digest is another one.
        """
        model = self._take_from_memory((site, version))
        if model is None:
            model = await asyncio.shield(self._load((site, version)))
        check_digest(model, sha256)
        self._cache(model)
        return model

    async def fetch_from_disk(self, site: str, version: str) -> LoadedModel:
        """A version as its files are now, also if it is in memory: they may have been damaged or removed since.

        Raises what `load_model` raises, and InvalidArtefact if they are not the files of the version in memory.
        """
        in_memory = [
            model.ref.sha256 for model in self.loaded if (model.ref.site, model.ref.version) == (site, version)
        ]
        model = await asyncio.shield(self._load((site, version)))
        check_digest(model, next(iter(in_memory), None))
        return model

    def make_current(self, model: LoadedModel) -> None:
        """For requests from now on. The former version stays in memory as one of the others."""
        former = self._current.get(model.ref.site)
        self._others.pop((model.ref.site, model.ref.version), None)
        self._current = {**self._current, model.ref.site: model}
        self._not_served.pop(model.ref.site, None)
        if former is not None:
            self._cache(former)

    def mark_not_served(self, site: str, reason: str) -> None:
        """Unless an earlier version is still served. No other version replaces it unasked: scores would change."""
        if site not in self._current:
            self._not_served[site] = reason

    async def published(self) -> dict[str, tuple[str, ...]]:
        """Site -> its published versions, lowest first; empty if the folder of a site cannot be read."""
        return await asyncio.to_thread(_published, self.models_dir)

    async def is_published(self, site: str, version: str) -> bool:
        """Whether there is such a version, usable or not. Of versions on disk only names are read."""
        if any((site, version) == (model.ref.site, model.ref.version) for model in self.loaded):
            return True
        found = (await self.published()).get(site)
        is_unreadable = found == ()  # so nothing is known about its versions
        return found is not None and (version == CURRENT or version in found or is_unreadable)

    async def highest_version(self, site: str) -> str:
        return await asyncio.to_thread(highest_version, self.models_dir, site)

    def _take_from_memory(self, name: SiteVersion) -> LoadedModel | None:
        site, version = name
        current = self._current.get(site)
        if current is not None and current.ref.version == version:
            return current
        return self._others.pop(name, None)  # `_cache` puts it back as the most recently used

    def _load(self, name: SiteVersion) -> asyncio.Task[LoadedModel]:
        task = self._loading.get(name)
        if task is None:
            task = asyncio.create_task(asyncio.to_thread(load_model, self.models_dir, self.backend, *name))
            self._loading[name] = task
            task.add_done_callback(lambda _: self._loading.pop(name))
        return task

    def _cache(self, model: LoadedModel) -> None:
        if self._current.get(model.ref.site) is model:
            return
        self._others[(model.ref.site, model.ref.version)] = model
        if len(self._others) > MAX_OTHER_VERSIONS:
            self._others.pop(next(iter(self._others)))


def _published(root: Path) -> dict[str, tuple[str, ...]]:
    found = {}
    for site in sites(root):
        try:
            found[site] = versions_of(root, site)
        except UnknownSite:  # an empty folder is no site
            continue
        except InvalidArtefact:
            found[site] = ()
    return found
