"""Health: may this process receive requests (readiness), what do its metrics say, and do its models still reproduce
their golden cases?"""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime

from prometheus_client import generate_latest

from app.database.keys import EXPIRY_NOTICE
from app.database.migrate import MIN_MONTHS_AHEAD
from app.inference.executor import LoadedModel
from app.inference.golden import check_model
from app.runtime.credentials import Keyring
from app.runtime.issuer_keys import IssuerKeys
from app.runtime.poller import UnusableVersion
from app.runtime.runtime import Runtime
from app.schemas.lookups import HealthWarning, ModelRef, ModelTest, Readiness, ReadinessChecks, SelfTest

Warnings = Iterator[HealthWarning]
NOT_VERIFIED = {
    "failed": "The scheduled verification of the audit failed: see the log.",
    "not_permitted": "The audit is not verified on schedule, because the database login may not read records: grant it "
    "the role normalcy_auditor, or run normalcy audit verify elsewhere.",
}


def check_readiness(runtime: Runtime, request_id: str) -> Readiness:
    checks = _checks(runtime)
    return Readiness(
        request_id=request_id,
        ready=checks.accepting and checks.models_loaded and checks.audit_writable,
        checks=checks,
        models=[ModelRef(**asdict(model.ref)) for model in runtime.loaded_models.current.values()],
        backend=runtime.service_info.backend,
        device=runtime.service_info.device,
        audit_queue_depth=runtime.writer.depth,
        warnings=_warnings(runtime),
    )


def read_metrics(runtime: Runtime) -> bytes:
    """Every metric of this process in Prometheus's text format, with readiness as it is now."""
    metrics = runtime.metrics
    for gauge in (metrics.warnings, metrics.current_model, metrics.audit_verification):
        gauge.clear()  # of what no longer holds
    metrics.audit_verified_timestamp.set(runtime.verification.last_intact)
    metrics.audit_verification.labels(runtime.verification.outcome).set(1)
    for check, passes in _checks(runtime):
        metrics.ready.labels(check).set(passes)
    for warning in _warnings(runtime):
        metrics.warnings.labels(warning.code).inc()
    for model in runtime.loaded_models.current.values():
        metrics.current_model.labels(**asdict(model.ref)).set(1)
    return generate_latest(metrics.registry)


def _checks(runtime: Runtime) -> ReadinessChecks:
    return ReadinessChecks(
        accepting=not runtime.is_draining,
        models_loaded=bool(runtime.loaded_models.current),
        audit_writable=runtime.writer.is_writable,
    )


async def run_selftest(runtime: Runtime, request_id: str) -> SelfTest:
    """Runs the golden cases of every loaded model."""
    models = [await asyncio.to_thread(_test, model) for model in runtime.loaded_models.loaded]
    return SelfTest(
        request_id=request_id,
        passed=sum(model.passed for model in models),
        failed=sum(model.failed for model in models),
        cases=sum(model.cases for model in models),
        models=models,
    )


def _test(model: LoadedModel) -> ModelTest:
    result = check_model(model)
    return ModelTest(**asdict(model.ref), passed=result.passed, failed=result.failed, cases=result.cases)


def _warnings(runtime: Runtime) -> list[HealthWarning]:
    """What an operator should look at while the service keeps serving."""
    return [
        *(_unusable_version(runtime, unusable) for unusable in runtime.poller.unusable.values()),
        *map(HealthWarning.model_validate, runtime.login_warnings),
        *_audit_warnings(runtime),
        *_checkpoint_warnings(runtime),
        *_key_warnings(runtime.keyring, runtime.clock(), has_issuers=bool(runtime.tokens.issuers)),
        *map(_issuer_warning, [keys for keys in runtime.tokens.issuers if keys.has_failed]),
    ]


def _unusable_version(runtime: Runtime, unusable: UnusableVersion) -> HealthWarning:
    site, version = unusable.wanted.site, unusable.wanted.version
    if site in runtime.loaded_models.not_served:
        current = f"its current version {version}" if version else "its highest version"
        message = f"{site} is not served, {current} cannot be used: {unusable.reason}"
        return HealthWarning(code="site_not_served", message=message)
    message = f"{site} {version} is on record as current and cannot be used here: {unusable.reason}"
    return HealthWarning(code="activation_not_followed", message=message)


def _audit_warnings(runtime: Runtime) -> Warnings:
    if runtime.writer.not_durable:
        yield HealthWarning(code="audit_not_durable", message=runtime.writer.not_durable)
    if runtime.writer.found_foreign_rows:
        message = "Somebody else has added rows to an audit chain of this process: run normalcy audit verify."
        yield HealthWarning(code="audit_foreign_rows", message=message)
    outcome = runtime.verification.outcome
    if outcome == "tampered":
        message = "The scheduled verification found that the audit was tampered with: run normalcy audit verify."
        yield HealthWarning(code="audit_tampered", message=message)
    if outcome in NOT_VERIFIED:
        yield HealthWarning(code="audit_not_verified", message=NOT_VERIFIED[outcome])
    months = runtime.poller.months_ahead
    if months < MIN_MONTHS_AHEAD:
        partitions = f"The audit has partitions for {months} months, this one included"
        yield HealthWarning(code="partitions_run_out", message=f"{partitions}: run normalcy db upgrade.")


def _key_warnings(keyring: Keyring, now: datetime, has_issuers: bool) -> Warnings:
    """Without names and ids, because readiness needs no credential."""
    live = keyring.live(now)
    if keyring.has_seen_keys and not live and not has_issuers:
        yield HealthWarning(
            code="no_live_key",
            message="Every API key has expired or is revoked, so every request is rejected: create one with "
            "normalcy keys create.",
        )
    ending = [key.expires_at for key in live if key.expires_at and key.expires_soon(now)]
    if ending:
        keys = "1 API key expires" if len(ending) == 1 else f"{len(ending)} API keys expire"
        first = f"the first at {min(ending)}: see normalcy keys list."
        yield HealthWarning(code="key_expires_soon", message=f"{keys} within {EXPIRY_NOTICE.days} days, {first}")


def _issuer_warning(keys: IssuerKeys) -> HealthWarning:
    """Without the name of the issuer, because readiness needs no credential."""
    consequence = "the last ones stay in use" if keys.keys else "none of its tokens is accepted"
    message = f"No usable public keys of a JWT issuer could be read, so {consequence}: see the log."
    return HealthWarning(code="issuer_keys_not_read", message=message)


def _checkpoint_warnings(runtime: Runtime) -> Warnings:
    checkpoints = runtime.checkpoints
    age = f"the last successful one is {checkpoints.age_seconds / 60:.0f} minutes old"
    if checkpoints.has_failed:
        message = f"No checkpoint of the audit could be taken, {age}: see the log."
        yield HealthWarning(code="checkpoint_failed", message=message)
    elif checkpoints.is_late:
        yield HealthWarning(code="checkpoint_late", message=f"A checkpoint of the audit is late, {age}.")
    if runtime.writer.publishing_failed:
        message = "A signed checkpoint of the audit is in the database only, its file cannot be written: see the log."
        yield HealthWarning(code="checkpoint_not_published", message=message)
    if checkpoints.lost_chains:
        lost = f"Audit chains that are missing or shorter than before: {checkpoints.lost_chains}"
        yield HealthWarning(code="audit_chains_lost", message=f"{lost}. Run normalcy audit verify.")
