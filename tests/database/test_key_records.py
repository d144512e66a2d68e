"""The records of keys are found without reading those of scores."""

from pathlib import Path

import aiosqlite
import pytest
from sqlalchemy.dialects import sqlite

from app.database.records import records_of_commands

pytestmark = pytest.mark.anyio


async def test_an_index_finds_them(migrated_sqlite: Path) -> None:
    query = records_of_commands("key").compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    async with aiosqlite.connect(migrated_sqlite) as connection:
        plan = await connection.execute_fetchall(f"EXPLAIN QUERY PLAN {query}")
    assert [line[-1] for line in plan] == ["SEARCH audit_records USING INDEX audit_records_request (request_id=?)"]
