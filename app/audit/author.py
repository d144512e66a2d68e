"""Who writes chains: the facts for their first records, the signer of their ends, and the file of what was signed.

A signed checkpoint goes to the database together with the rows that it covers, then to a file of the data folder (one
per month), to the file or stream of the setting, and to the log. Whoever can change the database should not be able to
change all of them.
"""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from app.audit.signed_checkpoint import NOTHING_BEFORE, Signer, checkpoint_hash, read_body, read_line, render_line
from app.audit.signing_key import PublicKey, load_signing_key
from app.database.checkpoints import CheckpointRow, any_checkpoint, may_read_audit
from app.database.engine import Connection, Database
from app.database.records import ChainHead, chain_heads, database_name
from app.errors import InvalidCheckpoint
from app.files import append_line
from app.settings import Settings

FOLDER = "checkpoints"  # of the data folder
STANDARD_OUTPUT = "-"
SIGNED_FILES = "signed-*.jsonl"


class CheckpointLog:
    """Where signed checkpoints go besides the database."""

    def __init__(self, data_dir: Path, extra_file: str = "") -> None:
        self._folder, self._extra_file = data_dir / FOLDER, extra_file

    def append(self, row: CheckpointRow) -> None:
        """Raises OSError if a file cannot be written."""
        line = render_line(row)
        structlog.get_logger("audit").info("signed audit checkpoint", signed=line.decode().strip())
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        append_line(self._folder / f"signed-{read_body(row.body).at[:7]}.jsonl", line)
        if self._extra_file == STANDARD_OUTPUT:
            sys.stdout.write(line.decode())
            sys.stdout.flush()
        elif self._extra_file:
            append_line(Path(self._extra_file), line)

    def latest_hash(self, database: str) -> str:
        """The hash of the last checkpoint of this database in the newest file that has one; zeros if there is none."""
        return next((checkpoint_hash(row.body) for row in self._newest_first(database)), NOTHING_BEFORE)

    def has_found(self, database: str) -> bool:
        """Whether a process with this data folder has signed the chains that it found in this database."""
        return any(row.kind == "found" for row in self._newest_first(database))

    def _newest_first(self, database: str) -> Iterator[CheckpointRow]:
        for file in reversed(signed_files(self._folder)):
            for line in reversed(file.read_bytes().splitlines()):
                try:
                    row = read_line(line)
                except InvalidCheckpoint:
                    continue  # a line that a full disk cut off; `normalcy audit verify` names it
                if read_body(row.body).database == database:
                    yield row


@dataclass(frozen=True, slots=True)
class Author:
    facts: dict[str, Any]  # host, process, version, models with digests, settings
    signer: Signer
    log: CheckpointLog


async def open_author(settings: Settings, database: Database, facts: dict[str, Any]) -> Author:
    """Raises InvalidSettings if there is no usable key, NormalcyError if others can read it."""
    key, log = load_signing_key(settings), CheckpointLog(settings.data_dir, settings.checkpoint_file)
    async with database.reading() as connection:
        name = await database_name(connection)
        previous = log.latest_hash(name)
        if previous == NOTHING_BEFORE:  # a new pod, for example
            previous = await _hash_of_found(connection, key.public)
    return Author(facts, Signer(key, name, previous), log)


async def _hash_of_found(connection: Connection, key: PublicKey) -> str:
    """The hash of the checkpoint of what was found, so that it cannot be removed unnoticed; zeros if there is none.

    Only of one with this key: anybody who may add rows can add another one.
    """
    row = await any_checkpoint(connection, "found") if await may_read_audit(connection) else None
    return checkpoint_hash(row.body) if row and key.has_signed(row.body, row.signature) else NOTHING_BEFORE


async def chains_to_adopt(database: Database, log: CheckpointLog) -> list[ChainHead] | None:
    """The ends of the chains that nobody has signed, for the first process of an installation that signs.

    None: there is nothing to do, or this login may not read records. Only the first time: verification does not accept
    what is found later, because somebody may have added it meanwhile. If the files name a checkpoint that the database
    lacks, somebody removed it.
    """
    async with database.reading() as connection:
        if not await may_read_audit(connection) or await any_checkpoint(connection, "found"):
            return None
        if await asyncio.to_thread(log.has_found, await database_name(connection)):
            return None
        return await chain_heads(connection)


def signed_files(folder: Path) -> list[Path]:
    """Oldest first."""
    return sorted(folder.glob(SIGNED_FILES))
