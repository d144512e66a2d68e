"""Which build of the program this is."""

import subprocess
from pathlib import Path

UNKNOWN = "unknown"


def source_commit() -> str:
    """The commit of the source tree that this package was imported from, or `unknown` outside one."""
    folder = Path(__file__).resolve().parents[1]
    if not (folder / ".git").exists():
        return UNKNOWN
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=5)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return done.stdout.strip() or UNKNOWN
