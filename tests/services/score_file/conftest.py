from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.runtime.command import command_runtime
from app.runtime.runtime import Runtime
from app.settings import Settings, load_settings
from tests.web.serving import publish_small


@pytest.fixture
def file_settings(tmp_path: Path) -> Settings:
    publish_small(tmp_path / "models", "SoV", "1.0.0", 0)
    return load_settings({"NORMALCY_DATA_DIR": str(tmp_path / "var"), "NORMALCY_MODELS_DIR": str(tmp_path / "models")})


@pytest.fixture
async def runtime(file_settings: Settings) -> AsyncIterator[Runtime]:
    async with command_runtime(file_settings, "score") as running:
        await running.poller.start()
        yield running
