"""What a worker is given: plain values, no connection and no secret. All workers see the files under these paths."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from app.domain.card import ModelRef
from app.files import file_digest
from app.formats.score_table import check_columns
from app.formats.table_files import Part, read_table


@dataclass(frozen=True, slots=True)
class Job:
    source: Path
    folder: Path  # of the parts
    suffix: str  # of the output
    site: str | None  # for rows without one
    models_dir: Path
    backend: str
    device: str
    current: tuple[ModelRef, ...]  # resolved once, at the start of the run
    not_served: tuple[tuple[str, str], ...]  # sites whose current version cannot be used, and why


class Source(NamedTuple):
    """The input, read once."""

    sha256: str
    parts: list[Part]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)


def inspect_source(path: Path, site: str | None, part_rows: int) -> Source:
    """Raises InvalidTable for a file that is not a table of measurements."""
    with path.open("rb") as file:
        table = read_table(path, file)
        check_columns(table.columns, site)
        return Source(file_digest(path), table.parts(part_rows))
