"""What the service knows: sites, versions, cards and limits."""

import asyncio
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from app.domain.card import Cohort
from app.domain.convention import Edge, Modality, Phase
from app.domain.limits import LIMITS
from app.domain.patient import Sex
from app.errors import InvalidArtefact
from app.formats.digits import rounded
from app.formats.summaries import SITES
from app.runtime.loaded_models import LoadedModels
from app.runtime.runtime import Runtime
from app.store import load

Json = dict[str, Any]


def sites(runtime: Runtime) -> Json:
    """Those that are not served too, without a current version."""
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


def limits() -> Json:
    choices = {"sex": tuple(Sex), "edge": get_args(Edge), "phase": get_args(Phase), "modality": get_args(Modality)}
    return {"limits": [asdict(limit) for limit in LIMITS], "choices": choices}


async def models(runtime: Runtime) -> Json:
    """Every published version, those that are damaged too."""
    published = await runtime.loaded_models.published()
    names = [(site, version) for site, numbers in published.items() for version in numbers]
    return {"models": [await asyncio.to_thread(_describe, runtime.loaded_models, *name) for name in names]}


async def card(runtime: Runtime, site: str, version: str) -> Json:
    model = await runtime.loaded_models.find(site, version)
    told: Json = rounded(model.card)
    return {**told, "sha256": model.ref.sha256}


def _describe(loaded_models: LoadedModels, site: str, version: str) -> Json:
    try:
        sha256, created_at, cohort = _identity(loaded_models.models_dir, site, version)
    except InvalidArtefact as refused:
        told: Json = {"sha256": None, "created_at": None, "cohort": None, "cohort_size": None}
        return {"site": site, "version": version, **told, "status": "refused", "refused": str(refused)}
    told = {"sha256": sha256, "created_at": created_at, "cohort": cohort.name, "cohort_size": cohort.size}
    return {"site": site, "version": version, **told, "status": _status(loaded_models, site, version), "refused": None}


@lru_cache(maxsize=256)
def _identity(models_dir: Path, site: str, version: str) -> tuple[str, str, Cohort]:
    """Read once: a published version never changes."""
    stored = load(models_dir, site, version)
    return stored.ref.sha256, stored.card.created_at, stored.card.cohort


def _status(loaded_models: LoadedModels, site: str, version: str) -> str:
    current = loaded_models.current.get(site)
    if current is not None and current.ref.version == version:
        return "current"
    return (
        "loaded" if any((m.ref.site, m.ref.version) == (site, version) for m in loaded_models.loaded) else "published"
    )
