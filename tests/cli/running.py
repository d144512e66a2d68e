"""Commands as a user runs them, but in this process: the real `main`, its exit code and its two streams."""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import text

from app.cli.main import main
from app.database.engine import Database, open_database
from app.settings import Settings

TABLES = ("audit_records", "audit_checkpoints")
GUARDS = tuple(f"{table}_{guard}" for table in TABLES for guard in ("no_update", "no_delete"))  # of SQLite
READING = ("--age-years", "55", "--sex", "male", "--height-cm", "176", "--weight-kg", "84", "--diameter-mm", "41")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Normalcy = Callable[..., Done]


def run_main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> Done:
    monkeypatch.setattr(sys, "argv", ["normalcy", *arguments])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    code = ended.value.code
    return Done(code if isinstance(code, int) else 0, out, err.lstrip("\n"))


def tamper(settings: Settings, statement: str, **values: Any) -> None:
    """As someone with all rights, who puts the guards back afterwards."""

    async def work() -> None:
        database = open_database(settings)
        try:
            async with database.writing() as connection:
                restore = await _unguard(database, connection)
                await connection.execute(text(statement), values)
                for guard in restore:
                    await connection.execute(text(guard))
        finally:
            await database.close()

    asyncio.run(work())


async def _unguard(database: Database, connection: Any) -> list[str]:
    """Takes the guards away; what brings them back."""
    if database.dialect == "postgresql":
        for table in TABLES:
            await connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER {table}_no_change"))
        return [f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_change" for table in TABLES]
    restore = []
    for name in GUARDS:
        found = await connection.execute(text("SELECT sql FROM sqlite_master WHERE name = :name"), {"name": name})
        restore.append(found.scalar_one())
        await connection.execute(text(f"DROP TRIGGER {name}"))
    return restore
