"""Running `normalcy` in a process of its own."""

import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-c", "from app.cli.main import main; main()"]


def normalcy(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=600)  # noqa: S603
