"""Logs (JSON lines) and Prometheus metrics, both without patients' values.

A command calls `configure_logging` once. Each runtime has its own `Metrics`.
"""

import json
import logging
import traceback
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TextIO, TypeVar, cast

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# Seconds, from one WAL sync on a fast disk to more than the whole budget of a record.
COMMIT_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FRAMES = 12  # innermost stack frames of a logged failure: enough to find it, short enough for one line


M = TypeVar("M", Counter, Histogram)


class ByLabels(dict[tuple[str, ...], M]):
    """Caches the metric of each set of labels, because the library's own look-up takes a lock every time."""

    def __init__(self, metric: M) -> None:
        self._metric: M = metric

    def __missing__(self, labels: tuple[str, ...]) -> M:
        child: M = self._metric.labels(*labels)
        self[labels] = child
        return child


@dataclass(frozen=True, slots=True)
class Metrics:
    registry: CollectorRegistry
    ready: Gauge  # the next three are set by app/services/check_health.py when they are read
    warnings: Gauge
    current_model: Gauge
    requests: ByLabels[Counter]
    request_seconds: ByLabels[Histogram]
    scores: ByLabels[Counter]
    verdicts: ByLabels[Counter]
    audit_batch_size: Histogram
    audit_commit_seconds: Histogram
    audit_queue_depth: Gauge
    audit_head_age_seconds: Gauge
    audit_durable: Gauge
    audit_failures: Counter
    audit_dropped: Counter
    refusals_aggregated: Counter
    credential_refusals: ByLabels[Counter]
    key_expiry_seconds: Gauge
    issuer_keys_age_seconds: Gauge
    checkpoint_age_seconds: Gauge
    checkpoint_failures: Counter
    audit_verified_timestamp: Gauge  # this and the next one are set by app/services/check_health.py
    audit_verification: Gauge


def make_metrics() -> Metrics:
    r = CollectorRegistry()
    return Metrics(
        registry=r,
        ready=Gauge("normalcy_ready", "1: this check of readiness passes. 0: it does not.", ("check",), registry=r),
        warnings=Gauge("normalcy_warnings", "Warnings of readiness, by code.", ("code",), registry=r),
        current_model=Gauge(
            "normalcy_current_model",
            "1: scores of this site come from this version. Replicas that differ follow different activations.",
            ("site", "version", "sha256"),
            registry=r,
        ),
        requests=ByLabels(
            Counter("normalcy_requests", "Requests answered.", ("route", "method", "status"), registry=r)
        ),
        request_seconds=ByLabels(
            Histogram(
                "normalcy_request_seconds",
                "Time from the arrival of a request to its response.",
                ("route",),
                registry=r,
            )
        ),
        scores=ByLabels(Counter("normalcy_scores", "Scores returned.", ("site", "version"), registry=r)),
        verdicts=ByLabels(Counter("normalcy_verdicts", "Reliability verdicts.", ("site", "verdict"), registry=r)),
        audit_batch_size=Histogram(
            "normalcy_audit_batch_size", "Audit records per commit.", buckets=BATCH_BUCKETS, registry=r
        ),
        audit_commit_seconds=Histogram(
            "normalcy_audit_commit_seconds", "Duration of an audit commit.", buckets=COMMIT_BUCKETS, registry=r
        ),
        audit_queue_depth=Gauge("normalcy_audit_queue_depth", "Audit records waiting for a commit.", registry=r),
        audit_head_age_seconds=Gauge(
            "normalcy_audit_head_age_seconds", "Time since this process last committed an audit record.", registry=r
        ),
        audit_durable=Gauge(
            "normalcy_audit_durable",
            "1: committed records survive a crash. 0: they may not, and nothing is scored.",
            registry=r,
        ),
        audit_failures=Counter("normalcy_audit_failures", "Failed audit commits.", registry=r),
        audit_dropped=Counter("normalcy_audit_dropped", "Refusals that could not be recorded.", registry=r),
        refusals_aggregated=Counter("normalcy_refusals_summed", "Refusals recorded in summaries.", registry=r),
        credential_refusals=ByLabels(
            Counter(
                "normalcy_credential_refusals",
                "Credentials that were not accepted, by reason.",
                ("reason",),
                registry=r,
            )
        ),
        key_expiry_seconds=Gauge(
            "normalcy_key_expiry_seconds", "Time until the next API key expires; +Inf if none will.", registry=r
        ),
        issuer_keys_age_seconds=Gauge(
            "normalcy_issuer_keys_age_seconds",
            "Time since the public keys of a JWT issuer were last read; +Inf before the first time.",
            ("issuer",),
            registry=r,
        ),
        checkpoint_age_seconds=Gauge(
            "normalcy_checkpoint_age_seconds",
            "Time since the last successful audit checkpoint, or since the start.",
            registry=r,
        ),
        checkpoint_failures=Counter("normalcy_checkpoint_failures", "Failed audit checkpoints.", registry=r),
        audit_verified_timestamp=Gauge(
            "normalcy_audit_verified_timestamp_seconds",
            "When this process last found the whole audit intact (Unix time); 0: not since its start.",
            registry=r,
        ),
        audit_verification=Gauge(
            "normalcy_audit_verification",
            "1: outcome of the last scheduled verification of the audit: pending, off, intact, tampered, failed, or "
            "not_permitted (the database login may not read records).",
            ("outcome",),
            registry=r,
        ),
    )


def configure_logging(level: str, stream: TextIO) -> None:
    """One JSON object per line, for our own loggers and those of libraries."""
    stream = cast(TextIO, BestEffort(stream))
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LibraryFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class BestEffort:
    """A stream that drops what cannot be written: a full disk or a closed pipe must not stop the service."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class LibraryFormatter(logging.Formatter):
    """Leaves out the arguments of a message and the text of exceptions: both may contain patients' values."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "event": record.msg if isinstance(record.msg, str) else type(record.msg).__name__,
            "logger": record.name,
            "level": record.levelname.lower(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
        }
        if record.exc_info and record.exc_info[1]:
            line |= describe_failure(record.exc_info[1])
        return json.dumps(line)


def describe_failure(error: BaseException) -> dict[str, str]:
    """The type of an exception and its stack frames, without its message, which may contain patients' values."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    where = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return {"error": type(error).__name__, "where": where}
