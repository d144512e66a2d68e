import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.settings import Settings, load_settings
from tests.cli.running import Done, Normalcy, run_main
from tests.default_log import reset_log
from tests.web.serving import publish_small


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for site, version, seed in (("SoV", "1.0.0", 0), ("SoV", "1.1.0", 5), ("AA", "1.0.0", 4)):
        publish_small(root, site, version, seed)
    return root


@pytest.fixture
def normalcy(
    settings: Settings, models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Normalcy]:
    """Runs a command on the database of the test, on both kinds one after the other."""
    monkeypatch.setenv("NORMALCY_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("NORMALCY_MODELS_DIR", str(models))
    if settings.database_url:
        monkeypatch.setenv("NORMALCY_DATABASE_URL", settings.database_url)
    yield from _running(monkeypatch, capsys)


@pytest.fixture
def embedded(tmp_path: Path, models: Path) -> Settings:
    """For an embedded database that does not exist yet."""
    return load_settings({"NORMALCY_DATA_DIR": str(tmp_path / "var"), "NORMALCY_MODELS_DIR": str(models)})


@pytest.fixture
def alone(
    embedded: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Normalcy]:
    """Runs a command on a fresh machine."""
    monkeypatch.setenv("NORMALCY_DATA_DIR", str(embedded.data_dir))
    monkeypatch.setenv("NORMALCY_MODELS_DIR", str(embedded.models_dir))
    yield from _running(monkeypatch, capsys)


def _running(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Normalcy]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level

    def run(*arguments: object) -> Done:
        return run_main(monkeypatch, capsys, tuple(map(str, arguments)))

    yield run
    root.handlers[:] = before
    root.setLevel(level)
    reset_log()
