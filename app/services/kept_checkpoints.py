"""Which checkpoints the audit is compared with: those that a service keeps in its data folder, one by name, or none.

A folder may have served several databases. A checkpoint says whose ends it holds; one of another database is left out
with a warning. Older ones say nothing, and count where they know at least one chain of this database.
"""

from pathlib import Path
from typing import Literal

from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.checkpoint import Checkpoint, parse
from app.database.records import database_name, heads
from app.errors import CheckpointRefused
from app.services.checkpoint_folder import FOLDER, checkpoint_files

Choice = Path | Literal["folder", "none"]
Kept = dict[Path, Checkpoint]  # oldest first


async def compared_with(connection: AsyncConnection, data_dir: Path, choice: Choice) -> tuple[Kept, tuple[str, ...]]:
    """Read before the chains are, so that the chains can only be longer. Raises CheckpointRefused for a broken file."""
    if isinstance(choice, Path):
        return {choice: _read(choice)}, ()
    files = checkpoint_files(data_dir / FOLDER) if choice == "folder" else []
    read = {file: _read(file) for file in files}
    ours = await _of_this_database(connection, read)
    others = len(read) - len(ours)
    if not others:
        return ours, ()
    told = f"{others} of {len(read)} checkpoints in {data_dir / FOLDER} are of another database and were not compared."
    return ours, (told,)


async def _of_this_database(connection: AsyncConnection, read: Kept) -> Kept:
    name = await database_name(connection)
    all_named = all(checkpoint.database for checkpoint in read.values())
    chains = set() if all_named else {head.chain_id for head in await heads(connection)}
    return {
        file: checkpoint
        for file, checkpoint in read.items()
        if checkpoint.database == name or (not checkpoint.database and chains & checkpoint.ends.keys())
    }


def _read(path: Path) -> Checkpoint:
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise CheckpointRefused(f"{path} cannot be read: {error.strerror}.") from error
    except CheckpointRefused as error:
        raise CheckpointRefused(f"{path}: {error}") from error
