"""What many tests share: both databases, migrated and empty, one at a time, and the log as text."""

import asyncio
import io
import logging
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import pytest

from app.database.engine import Database, open_database
from app.database.migrate import upgrade
from app.database.sqlite import FILE_NAME
from app.observability import configure_logging
from app.settings import Settings, load_settings
from tests.default_log import reset_log
from tests.postgres import PostgresServer, postgres_server

reset_log()
pytest_plugins = ["tests.markers", "tests.plain_routes.plugin"]

# No test may fail because the machine is busy.
hypothesis.settings.register_profile("normalcy", deadline=None)
hypothesis.settings.load_profile("normalcy")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as running:
        yield running


@pytest.fixture(scope="session")
def migrated_postgres(server: PostgresServer) -> Iterator[str]:
    """The name of the database that tests share, one after the other: emptying one is faster than making one."""
    with server.new_database() as name:
        migrate(load_settings({"NORMALCY_DATABASE_URL": server.url(name)}))
        yield name


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("migrated")
    migrate(load_settings({"NORMALCY_DATA_DIR": str(folder)}))
    return folder / FILE_NAME


@pytest.fixture(params=["postgresql", "sqlite"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """Of a database that is migrated and empty; every test that takes it runs on both. Its schema stays as it is."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("migrated_sqlite"), tmp_path / FILE_NAME)
        yield load_settings({"NORMALCY_DATA_DIR": str(tmp_path)})
        return
    server: PostgresServer = request.getfixturevalue("server")
    name = request.getfixturevalue("migrated_postgres")
    yield load_settings({"NORMALCY_DATA_DIR": str(tmp_path), "NORMALCY_DATABASE_URL": server.url(name)})
    server.clear(name)


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    opened = open_database(settings)
    yield opened
    await opened.close()


def migrate(settings: Settings) -> None:
    async def run() -> None:
        database = open_database(settings, statement_seconds=None)
        try:
            await upgrade(database)
        finally:
            await database.close()

    asyncio.run(run())


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Every line that is logged during the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    lines = io.StringIO()
    configure_logging("info", lines)
    yield lines
    reset_log()
    root.handlers[:], root.level = handlers, level
