"""May this process be sent requests? Models loaded, the audit writable, not about to stop."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from app.database.keys import EXPIRY_NOTICE
from app.database.partitions import FEWEST_AHEAD
from app.runtime.checkpoints import Checkpoints
from app.runtime.credentials import Keyring
from app.runtime.poller import NotFollowed
from app.runtime.runtime import Runtime


class Readiness(NamedTuple):
    is_ready: bool
    told: dict[str, Any]


def readiness(runtime: Runtime) -> Readiness:
    checks = {
        "accepting": not runtime.is_draining,
        "models_loaded": bool(runtime.loaded_models.current),
        "audit_writable": runtime.writer.is_writable,
    }
    is_ready = all(checks.values())
    told = {
        "ready": is_ready,
        "checks": checks,
        "models": [asdict(model.ref) for model in runtime.loaded_models.current.values()],
        "backend": runtime.stamp.backend,
        "device": runtime.stamp.device,
        "audit_queue_depth": runtime.writer.depth,
        "warnings": _warnings(runtime),
    }
    return Readiness(is_ready, told)


def _warnings(runtime: Runtime) -> list[dict[str, str]]:
    """What serves, and should be looked at."""
    told = [_not_followed(runtime, missed) for missed in runtime.poller.not_followed.values()]
    told += runtime.login_warnings
    if runtime.writer.not_durable:
        told.append({"code": "audit_not_durable", "message": runtime.writer.not_durable})
    if runtime.poller.months_ahead < FEWEST_AHEAD:
        message = (
            f"The audit has room for {runtime.poller.months_ahead} months, this one included: normalcy db upgrade."
        )
        told.append({"code": "partitions_run_out", "message": message})
    told += [{"code": code, "message": message} for code, message in _of_checkpoints(runtime.checkpoints)]
    return told + _key_warnings(runtime.keyring, runtime.clock())


def _not_followed(runtime: Runtime, missed: NotFollowed) -> dict[str, str]:
    site, version = missed.wanted.site, missed.wanted.version
    if site in runtime.loaded_models.not_served:
        current = f"its current version {version}" if version else "its highest version"
        return {
            "code": "site_not_served",
            "message": f"{site} is not served, {current} cannot be used: {missed.reason}",
        }
    message = f"{site} {version} is on record as current and cannot be used here: {missed.reason}"
    return {"code": "activation_not_followed", "message": message}


def _key_warnings(keyring: Keyring, now: datetime) -> list[dict[str, str]]:
    """Without a name or an id: whoever asks here needs no credential."""
    if keyring.has_seen_keys and not keyring.live(now):
        message = "Every API key has expired or is revoked, so nobody may ask: normalcy keys create."
        return [{"code": "no_live_key", "message": message}]
    ending = [key.expires_at for key in keyring.live(now) if key.expires_at and key.expires_soon(now)]
    if not ending:
        return []
    what = "1 API key expires" if len(ending) == 1 else f"{len(ending)} API keys expire"
    message = f"{what} within {EXPIRY_NOTICE.days} days, the first at {min(ending)}: normalcy keys list."
    return [{"code": "key_expires_soon", "message": message}]


def _of_checkpoints(checkpoints: Checkpoints) -> Iterator[tuple[str, str]]:
    minutes = f"the last good one is {checkpoints.age_seconds / 60:.0f} minutes old"
    if checkpoints.has_failed:
        yield "checkpoint_failed", f"No checkpoint of the audit could be taken, {minutes}: see the log."
    elif checkpoints.is_late:
        yield "checkpoint_late", f"A checkpoint of the audit is late, {minutes}."
    if checkpoints.lost_chains:
        lost = f"Chains of the audit that are gone or shorter than they were: {checkpoints.lost_chains}"
        yield "audit_chains_lost", f"{lost}. Run normalcy audit verify."
