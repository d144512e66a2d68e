"""Databases that a test may take apart."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.database.engine import Database, open_database
from app.database.migrate import upgrade
from app.settings import Settings, load_settings
from tests.postgres import PostgresServer


@pytest.fixture(params=["postgresql", "sqlite"])
def empty_settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """Of a database without a single table."""
    if request.param == "sqlite":
        yield load_settings({"NORMALCY_DATA_DIR": str(tmp_path)})
        return
    server: PostgresServer = request.getfixturevalue("server")
    with server.new_database() as name:
        yield load_settings({"NORMALCY_DATA_DIR": str(tmp_path), "NORMALCY_DATABASE_URL": server.url(name)})


@pytest.fixture
async def empty(empty_settings: Settings) -> AsyncIterator[Database]:
    opened = open_database(empty_settings, statement_seconds=None)
    yield opened
    await opened.close()


@pytest.fixture
async def own(empty: Database) -> Database:
    """Migrated, and nobody else's."""
    await upgrade(empty)
    return empty
