"""An audit with chains of every sort, and what `normalcy audit verify` and tools/verify_audit.py find in it."""

import asyncio
import importlib.util
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

from app.audit.author import chains_to_adopt, open_author
from app.audit.signing_key import PublicKey, load_signing_key
from app.audit.writer import AuditWriter
from app.clock import utc_now
from app.database.appender import Appender
from app.database.engine import Database
from app.database.sqlite import FILE_NAME
from app.observability import make_metrics
from app.services.manage_keys import create_key
from app.services.verify_audit import AuditVerification, verify_database
from app.settings import Settings
from tests.audit.recording import FACTS, add_unsigned_chain, score
from tests.documents import DOCS, ROOT

EXPORTS = re.findall(r"\\copy \((SELECT .*)\) TO (\w+\.csv) CSV HEADER", DOCS["docs/auditors.md"])
OF_TABLES = {"UNGUARDED"}  # what only the service's own command checks
Findings = frozenset[tuple[str, str]]  # kind, and the chain with its row where it is about one


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify_audit_tool", ROOT / "tools" / "verify_audit.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


TOOL = load_tool()


@dataclass(frozen=True)
class Found:
    by_service: Findings
    by_tool: Findings

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self.by_service}


@dataclass
class Auditor:
    """With a copy of the signed checkpoints and the public key, both stored elsewhere."""

    settings: Settings
    database: Database
    folder: Path
    key: PublicKey

    @classmethod
    def of(cls, settings: Settings, database: Database, folder: Path) -> "Auditor":
        key = load_signing_key(settings).public
        folder.mkdir(exist_ok=True)
        (folder / "public.pem").write_bytes(key.pem)
        auditor = cls(settings, database, folder, key)
        auditor.copy_checkpoints()
        return auditor

    @property
    def copy(self) -> Path:
        return self.folder / "signed.jsonl"

    def copy_checkpoints(self) -> None:
        files = sorted((self.settings.data_dir / "checkpoints").glob("signed-*.jsonl"))
        self.copy.write_bytes(b"".join(file.read_bytes() for file in files))

    async def verify(self) -> Found:
        found = await verify_database(
            self.database.without_timeouts(), self.settings, lambda *_: None, choice=self.copy, public_keys=[self.key]
        )
        return Found(_of_service(found), await self.run_tool())

    async def run_tool(self) -> Findings:
        problems, _ = await self._problems_and_remarks()
        return frozenset((kind, _place(words)) for kind, words in problems)

    async def remarks(self) -> list[str]:
        """Of the tool."""
        _, remarks = await self._problems_and_remarks()
        return remarks

    async def _problems_and_remarks(self) -> tuple[list[tuple[str, str]], list[str]]:
        audit, signed = await self.tables()
        keys = TOOL.Keys([self.folder / "public.pem"])
        _, _, problems, remarks = await asyncio.to_thread(TOOL.verify, audit, signed, [self.copy], keys)
        return problems, remarks

    async def tables(self) -> tuple[Path, Path | None]:
        """For the tool: the SQLite file, or the exports of both tables."""
        if self.settings.database_url:
            records, signed = await self._export()
            return records, signed
        return self.settings.data_dir / FILE_NAME, None

    async def _export(self) -> tuple[Path, ...]:
        connection = await asyncpg.connect(self.settings.database_url)
        try:
            async with connection.transaction(isolation="repeatable_read"):
                for query, name in EXPORTS:
                    await connection.copy_from_query(query, output=self.folder / name, format="csv", header=True)
        finally:
            await connection.close()
        return tuple(self.folder / name for _, name in EXPORTS)


def _of_service(found: AuditVerification) -> Findings:
    return frozenset(
        (str(each.damage), f"{each.chain_id} {each.seq}" if each.chain_id else "")
        for each in found.tampering
        if each.damage not in OF_TABLES
    )


def _place(words: str) -> str:
    """Of a line of the tool."""
    match = re.match(r"chain ([0-9a-f-]{36}), row (-?\d+): ", words)
    return f"{UUID(match[1])} {match[2]}" if match else ""


Clock = Callable[[], datetime]


async def open_writer(
    settings: Settings, database: Database, clock: Clock = utc_now, appender: Appender | None = None
) -> AuditWriter:
    author = await open_author(settings, database, FACTS)
    writer = AuditWriter(appender or database.appender(), author, make_metrics(), clock=clock)
    await writer.start(await chains_to_adopt(database, author.log))
    return writer


async def crash(writer: AuditWriter) -> None:
    """It stops writing at once: no seal, no last signature."""
    writer._stopping = True
    if writer._task is not None:
        writer._task.cancel()
        await asyncio.gather(writer._task, return_exceptions=True)
    if writer._publishing is not None:
        await writer._publishing
    await writer._appender.close()


async def fill(settings: Settings, database: Database, pick: random.Random) -> None:
    """A chain of before the first signature, two sealed ones, one of a writer that crashed after its last signature,
    and the chain of a key."""
    await add_unsigned_chain(database, timedelta(hours=2))
    start = utc_now() - timedelta(hours=1)
    for is_sealed in (True, True, False):
        now = [start]
        writer = await open_writer(settings, database, lambda now=now: now[0])  # type: ignore[misc]
        for number in range(pick.randrange(5, 9)):
            now[0] += timedelta(seconds=25)  # a checkpoint with every third record or so
            await writer.write([score(f"request-{number}", at=now[0])])
        await (writer.stop() if is_sealed else crash(writer))
        start = now[0]
    await create_key(settings, "tests", "ward", ["score"], 365)
