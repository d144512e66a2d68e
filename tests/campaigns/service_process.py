"""The service under test: `normalcy serve` in a process of its own, or a mutant of it, with data that outlive it."""

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

MODELS = Path(__file__).parents[2] / "models_store"
NORMALCY = (str(Path(sys.executable).with_name("normalcy")),)
ADDRESS = re.compile(rb"http://127\.0\.0\.1:(\d+)/docs")


class Verdict(NamedTuple):
    """The result of `normalcy audit verify`."""

    code: int
    chains: int
    broken: int


class ServiceProcess:
    """One process at a time; each start uses the same data and a new port."""

    def __init__(self, settings: Mapping[str, str], program: tuple[str, ...] = NORMALCY) -> None:
        given = {name: value for name, value in os.environ.items() if not name.startswith("NORMALCY_")}
        ours = {"NORMALCY_PORT": "0", "NORMALCY_MODELS_DIR": str(MODELS), "OMP_NUM_THREADS": "1"}
        self.settings, self._program, self.environment = dict(settings), program, given | ours | dict(settings)
        self._process: Process | None = None
        self._log: asyncio.Task[bytes] | None = None  # its log
        self.port: int | None = None  # None: no process listens

    @property
    def process(self) -> Process:
        if self._process is None:
            raise RuntimeError("the service was not started")
        return self._process

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._program, "serve", env=self.environment, stdout=PIPE, stderr=PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._log = asyncio.create_task(self._process.stderr.read())  # a full pipe would stop the service
        async for line in self._process.stdout:
            if found := ADDRESS.search(line):
                self.port = int(found[1])
                return
        raise RuntimeError(f"the service did not start: {await self.log()}")

    async def end(self, signal_number: int) -> int:
        """Sends the signal and waits for the exit code."""
        self.process.send_signal(signal_number)
        code = await self.process.wait()
        self.port = None
        return code

    async def log(self) -> str:
        """Of the process that ended last."""
        return (await self._log).decode() if self._log else ""

    async def verify(self, more: Mapping[str, str] | None = None) -> Verdict:
        """As an operator does, by the command; `more` are settings of the command alone."""
        command = (*NORMALCY, "audit", "verify", "--json")
        environment = {**self.environment, **(more or {})}
        done = await asyncio.create_subprocess_exec(*command, env=environment, stdout=PIPE, stderr=PIPE)
        out, errors = await done.communicate()
        if done.returncode not in (0, 1):
            raise RuntimeError(f"audit verify could not check: {errors.decode()}")
        found: dict[str, Any] = json.loads(out)
        return Verdict(done.returncode, found["chains"], len({one["chain_id"] for one in found["tampering"]}))
