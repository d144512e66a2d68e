"""Which checkpoints the audit is compared with: those that a service keeps in its data folder, one by name, or none.

A folder may have served several databases. A checkpoint says whose ends it holds; one of another database is left out
with a warning. Older ones say nothing and count always: where everything is gone they may be all that tells of it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.audit.checkpoint import Checkpoint, parse
from app.audit.verify import Coverage
from app.database.engine import Database
from app.database.records import database_name
from app.errors import InvalidCheckpoint
from app.runtime.checkpoint_folder import FOLDER, checkpoint_files

Choice = Path | Literal["folder", "none"]


@dataclass(frozen=True, slots=True)
class Compared:
    """A checkpoint that the chains were held against."""

    file: str
    taken_at: str
    root: str


@dataclass(frozen=True, slots=True)
class Kept:
    coverage: Coverage  # of the months that are read
    checkpoints: tuple[Compared, ...]  # oldest first
    cover_records: bool  # of whatever month
    warnings: tuple[str, ...]


async def compared_with(database: Database, data_dir: Path, choice: Choice, since_month: str = "") -> Kept:
    """To be read before the chains are, so that the chains can only be longer; one file at a time, however many.

    Raises InvalidCheckpoint for a broken one.
    """
    folder, chosen = data_dir / FOLDER, isinstance(choice, Path)
    files = [choice] if isinstance(choice, Path) else checkpoint_files(folder) if choice == "folder" else []
    async with database.reading() as connection:
        ours = ("", await database_name(connection))
    coverage, compared, cover_records = Coverage(), [], False
    for file in files:
        checkpoint = _read(file)
        if chosen or checkpoint.database in ours:
            coverage.add(checkpoint, since_month)
            compared.append(Compared(str(file), checkpoint.taken_at, checkpoint.root))
            cover_records |= bool(checkpoint.ends)
    others = len(files) - len(compared)
    left_out = f"{others} of {len(files)} checkpoints in {folder} are of another database and were not compared."
    by_time = tuple(sorted(compared, key=lambda one: one.taken_at))
    return Kept(coverage, by_time, cover_records, (left_out,) if others else ())


def _read(path: Path) -> Checkpoint:
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise InvalidCheckpoint(f"{path} cannot be read: {error.strerror}.") from error
    except InvalidCheckpoint as error:
        raise InvalidCheckpoint(f"{path}: {error}") from error
