"""May this process be sent requests? Models loaded, the audit writable, not about to stop."""

from dataclasses import asdict
from typing import Any, NamedTuple

from app.database.partitions import FEWEST_AHEAD
from app.services.running import RunningService


class Readiness(NamedTuple):
    is_ready: bool
    told: dict[str, Any]


def readiness(service: RunningService) -> Readiness:
    checks = {
        "accepting": not service.is_draining,
        "models_loaded": bool(service.shelf.current),
        "audit_writable": service.writer.is_writable,
    }
    is_ready = all(checks.values())
    told = {
        "ready": is_ready,
        "checks": checks,
        "models": [asdict(model.ref) for model in service.shelf.current.values()],
        "backend": service.stamp.backend,
        "device": service.stamp.device,
        "audit_queue_depth": service.writer.depth,
        "warnings": _warnings(service),
    }
    return Readiness(is_ready, told)


def _warnings(service: RunningService) -> list[dict[str, str]]:
    """What serves, and should be looked at."""
    told = [
        {
            "code": "activation_not_followed",
            "message": f"{missed.activation.site} {missed.activation.version} is on record as current and "
            f"cannot be used here: {missed.reason}",
        }
        for missed in service.watcher.not_followed.values()
    ]
    told += service.login_warnings
    if service.writer.not_durable:
        told.append({"code": "audit_not_durable", "message": service.writer.not_durable})
    if service.watcher.months_ahead < FEWEST_AHEAD:
        message = (
            f"The audit has room for {service.watcher.months_ahead} months, this one included: normalcy db upgrade."
        )
        told.append({"code": "partitions_run_out", "message": message})
    return told
