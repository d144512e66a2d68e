"""Published models: describe them, verify them, and make a version current.

Every process follows an activation within two seconds.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.audit import changes
from app.audit.author import Author
from app.audit.records import NewRecord
from app.clock import utc_now
from app.database.activations import Activation, history
from app.database.engine import Database
from app.domain.card import ModelRef
from app.errors import ActivationFailed, DatabaseUnavailable, InvalidArtefact, NotDurable, UnknownSite
from app.formats.rounding import rounded
from app.formats.summaries import SITES
from app.inference.executor import load_on_numpy
from app.inference.golden import check_model
from app.runtime.command import command_author, command_database
from app.runtime.credentials import Caller
from app.runtime.models import LoadedModels, choose_backend, load_model
from app.runtime.runtime import Runtime
from app.schemas import lookups as schemas
from app.schemas.fields import request_choices, request_limits
from app.schemas.lookups import (
    ActivePeriod,
    AllowedRange,
    ModelHistory,
    ModelList,
    PublishedModel,
    RequestLimits,
    Site,
    SiteList,
)
from app.schemas.model_card import ModelCard
from app.settings import Settings
from app.store import Verification, load, verify

Json = dict[str, Any]

COMMAND_LINE = "command-line"


def list_sites(runtime: Runtime, request_id: str) -> SiteList:
    """Sites that are not served are listed without a current version."""
    loaded_models = runtime.loaded_models
    current: dict[str, str | None] = {site: model.ref.version for site, model in loaded_models.current.items()}
    sites = [
        Site(
            site=site,
            name=SITES.get(site, site),
            current=version,
            loaded=sorted(other.ref.version for other in loaded_models.loaded if other.ref.site == site),
        )
        for site, version in sorted((dict.fromkeys(loaded_models.not_served) | current).items())
    ]
    return SiteList(request_id=request_id, sites=sites)


def list_limits(request_id: str) -> RequestLimits:
    limits = [AllowedRange.model_validate(limit, from_attributes=True) for limit in request_limits()]
    choices = {field: list(values) for field, values in request_choices().items()}
    return RequestLimits(request_id=request_id, limits=limits, choices=choices)


async def list_models(runtime: Runtime, request_id: str) -> ModelList:
    """Every published version, damaged ones included."""
    published = await runtime.loaded_models.published()
    names = [(site, version) for site, versions in published.items() for version in versions]
    return ModelList(request_id=request_id, models=[await _describe(runtime.loaded_models, *name) for name in names])


async def model_card(runtime: Runtime, request_id: str, site: str, version: str) -> ModelCard:
    model = await runtime.loaded_models.find(site, version)
    return ModelCard(request_id=request_id, sha256=model.ref.sha256, **rounded(model.card))


async def activation_history(runtime: Runtime, request_id: str, site: str) -> ModelHistory:
    if site not in await runtime.loaded_models.published():
        raise UnknownSite(site)
    async with runtime.database.reading() as connection:
        periods = await history(connection, site)
    current = runtime.loaded_models.current.get(site)
    return ModelHistory(
        request_id=request_id,
        site=site,
        current=current.ref.version if current else None,
        history=[_active_period(*period) for period in periods],
    )


def _active_period(activation: Activation, until: str | None) -> ActivePeriod:
    """Not validated: it shows what the database holds, even if somebody changed it."""
    return ActivePeriod.model_construct(
        version=activation.version,
        sha256=activation.sha256,
        from_=activation.activated_at,
        until=until,
        by=activation.activated_by,
    )


async def _describe(loaded_models: LoadedModels, site: str, version: str) -> PublishedModel:
    """From memory if it is loaded, otherwise from its files."""
    models = [model for model in loaded_models.loaded if (model.ref.site, model.ref.version) == (site, version)]
    try:
        stored = models[0].stored if models else await asyncio.to_thread(load, loaded_models.models_dir, site, version)
    except InvalidArtefact as error:
        return PublishedModel(
            site=site,
            version=version,
            sha256=None,
            created_at=None,
            cohort=None,
            cohort_size=None,
            status="refused",
            refused=str(error),
        )
    is_current = loaded_models.current.get(site) in models
    return PublishedModel(
        site=site,
        version=version,
        sha256=stored.ref.sha256,
        created_at=stored.card.created_at,
        cohort=stored.card.cohort.name,
        cohort_size=stored.card.cohort.size,
        status="current" if is_current else "loaded" if models else "published",
        refused=None,
    )


async def activate_model(runtime: Runtime, caller: Caller, site: str, version: str) -> schemas.Activation:
    """When this returns, this process scores with the version. If it raises, the earlier version stays current."""
    try:
        model = await runtime.loaded_models.fetch_from_disk(site, version)
    except InvalidArtefact as error:
        raise ActivationFailed(str(error)) from error
    except OSError as error:
        raise ActivationFailed("its files cannot be read.") from error
    if runtime.writer.not_durable:
        raise NotDurable(runtime.writer.not_durable)
    record = caller.new_record("activation", runtime.clock())
    author, budget = runtime.writer.author, runtime.writer.budget_seconds
    activation = await _activate(runtime.database, model.ref, record, author, budget)
    with suppress(DatabaseUnavailable):  # it is activated; this process follows at its next refresh
        await runtime.poller.refresh(model)
    return schemas.Activation(
        request_id=caller.request_id,
        site=activation.site,
        version=activation.version,
        sha256=activation.sha256,
        activated_at=activation.activated_at,
        activated_by=activation.activated_by,
    )


async def activate_from_command(settings: Settings, site: str, version: str, by: str = COMMAND_LINE) -> Activation:
    """The same without a running service. Serving processes follow within two seconds."""
    ref = load_model(settings.models_dir, choose_backend(settings), site, version).ref
    record = NewRecord("activation", utc_now(), by, route="normalcy models activate")
    async with command_database(settings) as database:
        author = await command_author(settings, database, "models activate")
        return await _activate(database, ref, record, author, settings.audit_budget_seconds)


async def _activate(database: Database, ref: ModelRef, record: NewRecord, author: Author, budget: float) -> Activation:
    """Commits the record together with the activation that refers to it.

    `budget` is in seconds and starts now: loading the model may have taken longer than a response may.
    """
    try:
        async with asyncio.timeout(budget), changes.open_change(database, author) as change:
            return await changes.activate(change, ref, record)
    except TimeoutError as error:
        raise DatabaseUnavailable from error


@dataclass(frozen=True, slots=True)
class VerifiedModel:
    site: str
    version: str
    sha256: str | None  # None: the files are damaged
    intact: bool
    finding: str  # one sentence


def verify_models(root: Path, site: str | None = None, version: str | None = None) -> tuple[VerifiedModel, ...]:
    """Every byte against its digest, every golden case on this machine."""
    return tuple(_run_golden_cases(root, verified) for verified in verify(root, site, version))


def _run_golden_cases(root: Path, verified: Verification) -> VerifiedModel:
    site, version = verified.site, verified.version
    if verified.error:
        return VerifiedModel(site, version, None, False, f"refused: {verified.error}")
    model = load_on_numpy(load(root, site, version))
    result = check_model(model)
    if result.failures:
        first = result.failures[0]
        share = f"{result.failed} of {result.cases} golden cases are not reproduced"
        finding = f"refused: {share}, first {first.quantity} of case {first.case}."
        return VerifiedModel(site, version, model.ref.sha256, False, finding)
    return VerifiedModel(site, version, model.ref.sha256, True, f"intact, {result.cases} golden cases reproduced.")
