"""The models in memory: the current one of each site, and others that callers asked for by version.

What a request found on arrival stays whole, because a model on the shelf is never changed, only replaced.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from app.errors import InvalidArtefact, NoModelLoaded, SiteNotServed, UnknownSite
from app.formats.score_request import CURRENT
from app.runtime.load_model import Backend, ServedModel, prepare
from app.store import highest_version, sites, versions_of
from app.store.artefact import SUMS

OTHERS = 16  # versions kept beside the current ones; each takes some 100 kB

Name = tuple[str, str]  # site, version


class LoadedModels:
    """Belongs to one event loop; models are read from disk in threads."""

    def __init__(self, models_dir: Path, backend: Backend) -> None:
        self.models_dir, self.backend = models_dir, backend
        self._current: dict[str, ServedModel] = {}
        self._not_served: dict[str, str] = {}  # sites whose current version cannot be used, and why
        self._others: dict[Name, ServedModel] = {}  # in the order of their last use
        self._arriving: dict[Name, asyncio.Task[ServedModel]] = {}

    @property
    def current(self) -> Mapping[str, ServedModel]:
        return self._current

    @property
    def loaded(self) -> list[ServedModel]:
        """By site, the current one first."""
        models = [*self._current.values(), *self._others.values()]
        return sorted(models, key=lambda model: model.ref.site)

    @property
    def not_served(self) -> Mapping[str, str]:
        return self._not_served

    async def find(self, site: str, version: str = CURRENT) -> ServedModel:
        return self.find_current(site) if version == CURRENT else await self.fetch(site, version)

    def find_current(self, site: str) -> ServedModel:
        model = self._current.get(site)
        if model is not None:
            return model
        if site in self._not_served:
            raise SiteNotServed(site, self._not_served[site])
        raise UnknownSite(site) if self._current else NoModelLoaded

    async def fetch(self, site: str, version: str, sha256: str | None = None) -> ServedModel:
        """From the shelf, or from disk: read, verified and warmed beside what is served. Many callers, one reading."""
        model = self._on_shelf((site, version))
        if model is None:
            model = await asyncio.shield(self._arrival((site, version)))
        if sha256 not in (None, model.ref.sha256):
            raise InvalidArtefact(SUMS, "the digest of the version is not the one on record.")
        self._keep(model)
        return model

    def make_current(self, model: ServedModel) -> None:
        """Requests that came before keep the model that they found."""
        former = self._current.get(model.ref.site)
        self._others.pop((model.ref.site, model.ref.version), None)
        self._current = {**self._current, model.ref.site: model}
        self._not_served.pop(model.ref.site, None)
        if former is not None:
            self._keep(former)

    def leave_out(self, site: str, reason: str) -> None:
        """Its current version cannot be used. No other takes its place unasked: that would be another answer."""
        if site not in self._current:
            self._not_served[site] = reason

    async def published(self) -> dict[str, tuple[str, ...]]:
        """Site -> its versions, lowest first; none of a site whose folder cannot be read."""
        return await asyncio.to_thread(_published, self.models_dir)

    async def highest_version(self, site: str) -> str:
        return await asyncio.to_thread(highest_version, self.models_dir, site)

    def _on_shelf(self, name: Name) -> ServedModel | None:
        current = self._current.get(name[0])
        if current is not None and current.ref.version == name[1]:
            return current
        return self._others.pop(name, None)  # put back as the last used

    def _arrival(self, name: Name) -> asyncio.Task[ServedModel]:
        task = self._arriving.get(name)
        if task is None:
            reading = asyncio.to_thread(prepare, self.models_dir, self.backend, *name)
            task = self._arriving[name] = asyncio.create_task(reading)
            task.add_done_callback(lambda _: self._arriving.pop(name))
        return task

    def _keep(self, model: ServedModel) -> None:
        if self._current.get(model.ref.site) is model:
            return
        self._others[(model.ref.site, model.ref.version)] = model
        if len(self._others) > OTHERS:
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
