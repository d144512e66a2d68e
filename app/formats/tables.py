"""Which kind of table a file is, by its suffix, and one way to read and write both."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, BinaryIO, Protocol

from app.errors import InvalidTable
from app.formats.csv_table import CsvReader, CsvWriter
from app.formats.parquet_table import ParquetReader, ParquetWriter
from app.formats.reading_row import Row
from app.formats.score_row import Column

CSV, PARQUET = ".csv", ".parquet"


class Table(Protocol):
    columns: list[str]

    def __iter__(self) -> Iterator[Row]: ...

    def share(self) -> float:
        """How much of it is behind us, 0..1."""


class Sheet(Protocol):
    def write(self, rows: Sequence[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


def refuse_other_kinds(*paths: PurePath) -> None:
    for path in paths:
        if path.suffix.lower() not in (CSV, PARQUET):
            raise InvalidTable([f"{path.name} must end in {CSV} or {PARQUET}."])


def table(path: PurePath, file: BinaryIO, size: int) -> Table:
    return CsvReader(file, size) if path.suffix.lower() == CSV else ParquetReader(file)


def sheet(path: PurePath, file: BinaryIO, columns: Sequence[Column]) -> Sheet:
    if path.suffix.lower() == CSV:
        return CsvWriter(file, [column.name for column in columns])
    return ParquetWriter(file, columns)
