"""A mutant against the command that must catch it."""

import re
import shlex
import subprocess
import sys

from tests.campaigns.faults.mutants import MUTANTS, Mutant, program_of
from tests.campaigns.faults.row import Context, Finding

TIMEOUT_SECONDS = 900
CAUGHT = "caught"
SHOWN = 80  # characters of what the command said


async def run_broken_build(context: Context, name: str) -> Finding:
    seen = run_mutant(name)
    return Finding(1, {"seen": seen}, [] if seen.startswith(CAUGHT) else [seen])


def run_mutant(name: str) -> str:
    """What was seen, beginning with `caught` if the command failed for the right reason."""
    command = command_of(name, MUTANTS[name])
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS)  # noqa: S603
    sign = re.search(MUTANTS[name].sign, done.stdout + done.stderr)
    if done.returncode == 0:
        return "not noticed"
    if sign is None:
        return f"failed without its sign: {(done.stdout + done.stderr).strip().splitlines()[-1][:SHOWN]}"
    return f"{CAUGHT}: {sign[0]}"


def command_of(name: str, mutant: Mutant) -> list[str]:
    words = shlex.split(mutant.caught_by)
    if mutant.is_row:
        return [sys.executable, "-m", "tests.campaigns.faults", *words, "--mutant", name]
    return [*program_of(name), "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *words]


def shown_command(name: str, mutant: Mutant) -> str:
    """As a person types it."""
    words = command_of(name, mutant)
    return shlex.join(["python", *words[1:]])
