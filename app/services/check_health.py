"""Health: may this process receive requests (readiness), and do its models still reproduce their golden cases?"""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from app.database.keys import EXPIRY_NOTICE
from app.database.migrate import FEWEST_AHEAD
from app.inference.executor import LoadedModel
from app.inference.golden import check_model
from app.runtime.checkpoints import Checkpoints
from app.runtime.credentials import Keyring
from app.runtime.poller import UnusableVersion
from app.runtime.runtime import Runtime

Json = dict[str, Any]
Warnings = Iterator[tuple[str, str]]  # code and message


class Readiness(NamedTuple):
    is_ready: bool
    body: Json


def check_readiness(runtime: Runtime) -> Readiness:
    checks = {
        "accepting": not runtime.is_draining,
        "models_loaded": bool(runtime.loaded_models.current),
        "audit_writable": runtime.writer.is_writable,
    }
    is_ready = all(checks.values())
    body = {
        "ready": is_ready,
        "checks": checks,
        "models": [asdict(model.ref) for model in runtime.loaded_models.current.values()],
        "backend": runtime.service_info.backend,
        "device": runtime.service_info.device,
        "audit_queue_depth": runtime.writer.depth,
        "warnings": _warnings(runtime),
    }
    return Readiness(is_ready, body)


async def run_selftest(runtime: Runtime) -> Json:
    """Runs the golden cases of every loaded model."""
    models = [await asyncio.to_thread(_test, model) for model in runtime.loaded_models.loaded]
    totals = {name: sum(model[name] for model in models) for name in ("passed", "failed", "cases")}
    return {**totals, "models": models}


def _test(model: LoadedModel) -> Json:
    result = check_model(model)
    return asdict(model.ref) | {"passed": result.passed, "failed": result.failed, "cases": result.cases}


def _warnings(runtime: Runtime) -> list[dict[str, str]]:
    """What an operator should look at while the service keeps serving."""
    found = (
        *(_unusable_version(runtime, unusable) for unusable in runtime.poller.unusable.values()),
        *((warning["code"], warning["message"]) for warning in runtime.login_warnings),
        *_audit_warnings(runtime),
        *_checkpoint_warnings(runtime.checkpoints),
        *_key_warnings(runtime.keyring, runtime.clock()),
    )
    return [{"code": code, "message": message} for code, message in found]


def _unusable_version(runtime: Runtime, unusable: UnusableVersion) -> tuple[str, str]:
    site, version = unusable.wanted.site, unusable.wanted.version
    if site in runtime.loaded_models.not_served:
        current = f"its current version {version}" if version else "its highest version"
        return "site_not_served", f"{site} is not served, {current} cannot be used: {unusable.reason}"
    message = f"{site} {version} is on record as current and cannot be used here: {unusable.reason}"
    return "activation_not_followed", message


def _audit_warnings(runtime: Runtime) -> Warnings:
    if runtime.writer.not_durable:
        yield "audit_not_durable", runtime.writer.not_durable
    months = runtime.poller.months_ahead
    if months < FEWEST_AHEAD:
        partitions = f"The audit has partitions for {months} months, this one included"
        yield "partitions_run_out", f"{partitions}: run normalcy db upgrade."


def _key_warnings(keyring: Keyring, now: datetime) -> Warnings:
    """Without names and ids, because readiness needs no credential."""
    live = keyring.live(now)
    if keyring.has_seen_keys and not live:
        yield (
            "no_live_key",
            "Every API key has expired or is revoked, so every request is rejected: create one with "
            "normalcy keys create.",
        )
    ending = [key.expires_at for key in live if key.expires_at and key.expires_soon(now)]
    if ending:
        keys = "1 API key expires" if len(ending) == 1 else f"{len(ending)} API keys expire"
        first = f"the first at {min(ending)}: see normalcy keys list."
        yield "key_expires_soon", f"{keys} within {EXPIRY_NOTICE.days} days, {first}"


def _checkpoint_warnings(checkpoints: Checkpoints) -> Warnings:
    age = f"the last successful one is {checkpoints.age_seconds / 60:.0f} minutes old"
    if checkpoints.has_failed:
        yield "checkpoint_failed", f"No checkpoint of the audit could be taken, {age}: see the log."
    elif checkpoints.is_late:
        yield "checkpoint_late", f"A checkpoint of the audit is late, {age}."
    if checkpoints.lost_chains:
        lost = f"Audit chains that are missing or shorter than before: {checkpoints.lost_chains}"
        yield "audit_chains_lost", f"{lost}. Run normalcy audit verify."
