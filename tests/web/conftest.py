from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.settings import Settings, load_settings
from tests.web.browsing import OpenPage, chromium, opened, patient_settings
from tests.web.serving import Running, create_key, publish_small, serving


class Keyed(NamedTuple):
    """A service that requires keys, and one key of each kind."""

    running: Running
    both: str
    reading: str


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sites; SoV has a version to go back to."""
    root = tmp_path_factory.mktemp("models")
    for site, version, seed in (("SoV", "1.0.0", 0), ("SoV", "1.1.0", 5), ("AA", "1.0.0", 4)):
        publish_small(root, site, version, seed)
    return root


@pytest.fixture
def patient() -> bool:
    """Tests of what happens when time runs out override it."""
    return True


@pytest.fixture
def running(settings: Settings, models_dir: Path, patient: bool) -> Iterator[Running]:
    """On both databases, one after the other."""
    with serving(settings, models_dir, patient=patient) as service:
        yield service


PRECOMPILED = [
    pytest.param(True, id="precompiled", marks=pytest.mark.resolver),
    pytest.param(False, id="fastapi", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=PRECOMPILED)
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, models_dir: Path
) -> Iterator[Running]:
    """One service on SQLite for the tests of a file that leave nothing behind; also with FastAPI's own resolution of
    dependencies (see app/web/resolver.py)."""
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path_factory.mktemp("data"))})
    with serving(settings, models_dir, precompiled=request.param) as service:
        yield service


MODELS = Path(__file__).parents[2] / "models_store"


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service on SQLite with the shipped models, for the tests of the pages."""
    settings = patient_settings(tmp_path_factory.mktemp("data"))
    with serving(settings, MODELS) as service:
        yield service


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    """The same where keys are required. Keys are made in another thread: see `chromium`."""
    settings = patient_settings(tmp_path_factory.mktemp("keyed"))
    with serving(settings, MODELS) as running, ThreadPoolExecutor(1) as other:
        both = other.submit(create_key, running.settings, ["score", "model:read"]).result()
        reading = other.submit(create_key, running.settings, ["model:read"]).result()
        running.inside(running.runtime.poller.refresh())
        yield Keyed(running, both, reading)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


@pytest.fixture
def calculator(browser: Any, shipped: Running) -> Iterator[OpenPage]:
    with opened(browser, shipped) as one:
        one.open()
        yield one
