"""Verify the model store: every byte against its digest, every golden case on this machine."""

from dataclasses import dataclass
from pathlib import Path

from app.inference.executor import load_on_numpy
from app.inference.golden import check_model
from app.store import Verification, load, verify


@dataclass(frozen=True, slots=True)
class VerifiedModel:
    site: str
    version: str
    sha256: str | None  # None: the files are damaged
    intact: bool
    finding: str  # one sentence


def verify_models(root: Path, site: str | None = None, version: str | None = None) -> tuple[VerifiedModel, ...]:
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
