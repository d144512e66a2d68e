"""A writer on either database."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from app.audit.writer import AuditWriter
from app.database.engine import Database
from app.observability import Metrics, make_metrics
from tests.audit.recording import author


@pytest.fixture
def metrics() -> Metrics:
    return make_metrics()


@pytest.fixture
async def open_writer(database: Database, metrics: Metrics) -> AsyncIterator[Callable[..., Awaitable[AuditWriter]]]:
    """Opens as many as a test asks for; those that it did not stop are stopped at its end."""
    writers: list[AuditWriter] = []

    async def start(**options: object) -> AuditWriter:
        appender = options.pop("appender", None) or database.appender()
        writer = AuditWriter(appender, author(), metrics, **options)  # type: ignore[arg-type]
        writers.append(writer)
        await writer.start()
        return writer

    yield start
    for writer in writers:
        await writer.stop()


@pytest.fixture
async def writer(open_writer: Callable[..., Awaitable[AuditWriter]]) -> AuditWriter:
    return await open_writer()
