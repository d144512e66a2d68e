"""A real service in a process of its own, with a key that has every scope."""

import asyncio
import shutil
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from app.database.sqlite import FILE_NAME
from app.domain.scopes import Scope
from app.settings import Settings, load_settings
from tests.campaigns.service_process import ServiceProcess
from tests.web.serving import create_key

T = TypeVar("T")
UNLIMITED = {"NORMALCY_RATE_PER_SECOND": "0"}  # the limit would answer nearly all requests


@dataclass(frozen=True)
class Target:
    folder: Path
    key: str

    def run(self, work: Callable[[int, str], Awaitable[T]]) -> tuple[T, str]:
        """Starts the service, hands its port and the key to `work`, stops it; what `work` returned, and the log."""
        return asyncio.run(self._run(work))

    async def _run(self, work: Callable[[int, str], Awaitable[T]]) -> tuple[T, str]:
        service = ServiceProcess({"NORMALCY_DATA_DIR": str(self.folder), "NORMALCY_LOG_LEVEL": "debug", **UNLIMITED})
        await service.start()
        try:
            assert service.port is not None
            result = await work(service.port, self.key)
        finally:
            await service.end(signal.SIGINT)
        return result, await service.log()

    @property
    def settings(self) -> Settings:
        return load_settings({"NORMALCY_DATA_DIR": str(self.folder), **UNLIMITED})


def make_target(folder: Path, migrated: Path) -> Target:
    shutil.copy(migrated, folder / FILE_NAME)
    return Target(folder, create_key(load_settings({"NORMALCY_DATA_DIR": str(folder)}), tuple(Scope)))
