"""Verify the store: every byte against its digest, every golden case against the code that runs here."""

from dataclasses import dataclass
from pathlib import Path

from app.inference.golden import check_golden
from app.inference.numpy_executor import NumpyExecutor
from app.store import Verification, load, verify


@dataclass(frozen=True, slots=True)
class Verified:
    site: str
    version: str
    sha256: str | None  # None: refused
    intact: bool
    finding: str  # one sentence


def verify_models(root: Path, site: str | None = None, version: str | None = None) -> tuple[Verified, ...]:
    return tuple(_with_golden_cases(root, found) for found in verify(root, site, version))


def _with_golden_cases(root: Path, found: Verification) -> Verified:
    site, version = found.site, found.version
    if found.refused:
        return Verified(site, version, None, False, f"refused: {found.refused}")
    stored = load(root, site, version)
    executor, scale = NumpyExecutor(stored.posterior), stored.posterior.scaling.y_scale
    result = check_golden(executor, stored.card.age_transform, scale, stored.golden)
    if result.failures:
        first = result.failures[0]
        share = f"{result.failed} of {result.cases} golden cases are not reproduced"
        finding = f"refused: {share}, first {first.quantity} of case {first.case}."
        return Verified(site, version, stored.ref.sha256, False, finding)
    return Verified(site, version, stored.ref.sha256, True, f"intact, {result.cases} golden cases reproduced.")
