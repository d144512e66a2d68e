"""Tables as CSV or Parquet, chosen by the suffix of the file, read and written in bounded memory.

The files are opened by the caller. Parquet needs pyarrow, which a serving installation leaves out.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from types import ModuleType
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol

from app.errors import InvalidTable, NotInstalled
from app.files import csv_records

CSV, PARQUET = ".csv", ".parquet"
BATCH_ROWS = 4096
PANDAS_INDEX = re.compile(r"__index_level_\d+__", re.ASCII)  # the row numbers that pandas adds when it writes a frame
RAGGED = ""  # the column of a row that does not have as many cells as the header

Row = Mapping[str, object]


class Column(NamedTuple):
    name: str
    kind: Literal["text", "number", "integer"]
    meaning: str


class TableReader(Protocol):
    columns: list[str]

    def __iter__(self) -> Iterator[Row]: ...

    def share(self) -> float:
        """How much of the file has been read, 0..1."""


class TableWriter(Protocol):
    def write(self, rows: Sequence[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


def check_suffixes(*paths: PurePath) -> None:
    for path in paths:
        if path.suffix.lower() not in (CSV, PARQUET):
            raise InvalidTable([f"{path.name} must end in {CSV} or {PARQUET}."])


def table_reader(path: PurePath, file: BinaryIO, size: int) -> TableReader:
    return CsvReader(file, size) if path.suffix.lower() == CSV else ParquetReader(file)


def table_writer(path: PurePath, file: BinaryIO, columns: Sequence[Column]) -> TableWriter:
    if path.suffix.lower() == CSV:
        return CsvWriter(file, [column.name for column in columns])
    return ParquetWriter(file, columns)


class CsvReader:
    """UTF-8, commas, a header; blank lines are left out."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, max(size, 1)
        self._records = csv_records(file)
        self.columns = next(self._records, [])

    def __iter__(self) -> Iterator[Row]:
        for record in self._records:
            ragged = {} if len(record) == len(self.columns) else {RAGGED: len(record)}
            if any(record):
                yield {**dict(zip(self.columns, record, strict=False)), **ragged}

    def share(self) -> float:
        return min(1.0, self._file.tell() / self._size)


class CsvWriter:
    def __init__(self, file: BinaryIO, columns: Sequence[str]) -> None:
        self._file, self._columns = file, columns
        self._write([columns])

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._write([[row[name] for name in self._columns] for row in rows])

    def close(self) -> None:
        """Nothing is added at the end of a CSV."""

    def _write(self, records: Sequence[Sequence[object]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(records)
        self._file.write(text.getvalue().encode())


class ParquetReader:
    def __init__(self, file: BinaryIO) -> None:
        pyarrow, parquet = _pyarrow()
        try:
            self._table = parquet.ParquetFile(file)
        except pyarrow.ArrowInvalid as error:
            raise InvalidTable(["The file is not Parquet."]) from error
        self._errors = (pyarrow.ArrowException, OSError)
        names = self._table.schema_arrow.names
        self.columns: list[str] = [name for name in names if not PANDAS_INDEX.fullmatch(name)]
        self._rows = max(int(self._table.metadata.num_rows), 1)
        self._seen = 0

    def __iter__(self) -> Iterator[Row]:
        try:
            for batch in self._table.iter_batches(BATCH_ROWS, columns=self.columns):
                yield from batch.to_pylist()
                self._seen += int(batch.num_rows)
        except self._errors as error:
            raise InvalidTable(["The file is damaged: not all of its rows can be read."]) from error

    def share(self) -> float:
        return self._seen / self._rows


class ParquetWriter:
    def __init__(self, file: BinaryIO, columns: Sequence[Column]) -> None:
        self._pyarrow, parquet = _pyarrow()
        types = {"text": "string", "number": "float64", "integer": "int64"}
        fields = [(column.name, self._pyarrow.type_for_alias(types[column.kind])) for column in columns]
        self._schema = self._pyarrow.schema(fields)
        self._table = parquet.ParquetWriter(file, self._schema)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._table.write_batch(self._pyarrow.RecordBatch.from_pylist(list(rows), schema=self._schema))

    def close(self) -> None:
        self._table.close()


def _pyarrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise NotInstalled("pyarrow for Parquet files") from error
    return pyarrow, pyarrow.parquet
