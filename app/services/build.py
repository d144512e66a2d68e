"""Which program this is: its version and commit, as every answer tells them."""

import subprocess
from pathlib import Path

import app
from app.formats.answer import ServiceStamp
from app.services.prepare import Backend
from app.settings import Settings

UNKNOWN = "unknown"


def service_stamp(settings: Settings, backend: Backend) -> ServiceStamp:
    commit = settings.commit if settings.commit != UNKNOWN else _commit_of_source_tree()
    return ServiceStamp(app.__version__, commit, backend.name, backend.device)


def _commit_of_source_tree() -> str:
    """A build says its commit by the setting; a clone can be asked."""
    folder = Path(app.__file__).resolve().parents[1]
    if not (folder / ".git").exists():
        return UNKNOWN
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=5)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return done.stdout.strip() or UNKNOWN
