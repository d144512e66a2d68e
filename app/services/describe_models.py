"""What is published and served: sites, versions, model cards, activation history, and the limits of requests."""

import asyncio
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.database.activations import history
from app.domain.card import Cohort
from app.errors import InvalidArtefact, UnknownSite
from app.formats.rounding import rounded
from app.formats.summaries import SITES
from app.runtime.models import LoadedModels
from app.runtime.runtime import Runtime
from app.schemas.fields import request_choices, request_limits
from app.store import load

Json = dict[str, Any]


def list_sites(runtime: Runtime) -> Json:
    """Sites that are not served are listed without a current version."""
    loaded_models = runtime.loaded_models
    current: dict[str, str | None] = {site: model.ref.version for site, model in loaded_models.current.items()}
    return {
        "sites": [
            {
                "site": site,
                "name": SITES.get(site, site),
                "current": version,
                "loaded": sorted(other.ref.version for other in loaded_models.loaded if other.ref.site == site),
            }
            for site, version in sorted((dict.fromkeys(loaded_models.not_served) | current).items())
        ]
    }


def list_limits() -> Json:
    return {"limits": [asdict(limit) for limit in request_limits()], "choices": request_choices()}


async def list_models(runtime: Runtime) -> Json:
    """Every published version, damaged ones included."""
    published = await runtime.loaded_models.published()
    names = [(site, version) for site, versions in published.items() for version in versions]
    return {"models": [await asyncio.to_thread(_describe, runtime.loaded_models, *name) for name in names]}


async def model_card(runtime: Runtime, site: str, version: str) -> Json:
    model = await runtime.loaded_models.find(site, version)
    card: Json = rounded(model.card)
    return {**card, "sha256": model.ref.sha256}


async def activation_history(runtime: Runtime, site: str) -> Json:
    if site not in await runtime.loaded_models.published():
        raise UnknownSite(site)
    async with runtime.database.reading() as connection:
        periods = await history(connection, site)
    current = runtime.loaded_models.current.get(site)
    return {
        "site": site,
        "current": current.ref.version if current else None,
        "history": [
            {
                "version": period.activation.version,
                "sha256": period.activation.sha256,
                "from": period.activation.activated_at,
                "until": period.until,
                "by": period.activation.activated_by,
            }
            for period in periods
        ],
    }


def _describe(loaded_models: LoadedModels, site: str, version: str) -> Json:
    try:
        sha256, created_at, cohort = _identity(loaded_models.models_dir, site, version)
    except InvalidArtefact as error:
        unknown: Json = {"sha256": None, "created_at": None, "cohort": None, "cohort_size": None}
        return {"site": site, "version": version, **unknown, "status": "refused", "refused": str(error)}
    known: Json = {"sha256": sha256, "created_at": created_at, "cohort": cohort.name, "cohort_size": cohort.size}
    return {"site": site, "version": version, **known, "status": _status(loaded_models, site, version), "refused": None}


@lru_cache(maxsize=256)
def _identity(models_dir: Path, site: str, version: str) -> tuple[str, str, Cohort]:
    """Read once, because a published version never changes."""
    stored = load(models_dir, site, version)
    return stored.ref.sha256, stored.card.created_at, stored.card.cohort


def _status(loaded_models: LoadedModels, site: str, version: str) -> str:
    current = loaded_models.current.get(site)
    if current is not None and current.ref.version == version:
        return "current"
    is_loaded = any((model.ref.site, model.ref.version) == (site, version) for model in loaded_models.loaded)
    return "loaded" if is_loaded else "published"
