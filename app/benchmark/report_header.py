"""The head of every report: the command, the code, the libraries and the machine that made it."""

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import app
from app.build_info import source_commit
from app.clock import utc_now

LIBRARIES = ("numpy", "scipy", "gpflow", "tensorflow")


def report_header(command: str, seed: int | None = None) -> list[str]:
    """Markdown lines."""
    seeded = f" with seed {seed}" if seed is not None else ""
    lines = [
        f"Made by `{command}`{seeded} on {utc_now():%Y-%m-%d}.",
        f"Normalcy {app.__version__}, commit {source_commit()}; Python {platform.python_version()}, {_libraries()}.",
        f"Machine: {processor()}, {os.cpu_count()} cores, shared with other work: read ratios, not absolute times.",
    ]
    return [line + "  " for line in lines]


def git(*arguments: str) -> str:
    """What git prints, or nothing outside a source tree."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=True)  # noqa: S603, S607
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _libraries(names: Sequence[str] = LIBRARIES) -> str:
    return ", ".join(f"{name} {installed_version(name)}" for name in names)


def installed_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown processor"
    names = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    return next(names, "unknown processor")
