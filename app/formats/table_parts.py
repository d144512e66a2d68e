"""The output of a run in parts: each written by itself, then put together in one file, CSV or Parquet.

The parts of a CSV are its lines without the header; those of Parquet are Arrow files, which take less time to write and
to read than Parquet.
"""

import io
from collections.abc import Iterable, Sequence
from shutil import copyfileobj
from types import ModuleType
from typing import Any, BinaryIO, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.files import csv_lines
from app.formats.table_files import CSV, Column, Flat, pyarrow_modules

ARROW_TYPES = {"text": "string", "number": "float64", "integer": "int64"}


class PartWriter(Protocol):
    def write(self, columns: Flat) -> None: ...

    def close(self) -> None: ...


class Output(Protocol):
    def append(self, part: BinaryIO) -> None: ...

    def close(self) -> None: ...


def part_writer(suffix: str, file: BinaryIO, columns: Sequence[Column]) -> PartWriter:
    return CsvLines(file, columns) if suffix == CSV else ArrowPart(file, columns)


def open_output(suffix: str, file: BinaryIO | io.RawIOBase, columns: Sequence[Column]) -> Output:
    return CsvOutput(file, columns) if suffix == CSV else ParquetOutput(file, columns)


class CsvLines:
    def __init__(self, file: BinaryIO, columns: Sequence[Column]) -> None:
        self._file, self._names = file, [column.name for column in columns]

    def write(self, columns: Flat) -> None:
        self._file.write(csv_of(columns[name] for name in self._names))

    def close(self) -> None:
        """Nothing is added at the end."""


class CsvOutput:
    def __init__(self, file: BinaryIO | io.RawIOBase, columns: Sequence[Column]) -> None:
        self._file = file
        file.write(csv_lines([[column.name for column in columns]]))

    def append(self, part: BinaryIO) -> None:
        copyfileobj(part, self._file)

    def close(self) -> None:
        """Nothing is added at the end."""


class ArrowPart:
    def __init__(self, file: BinaryIO, columns: Sequence[Column]) -> None:
        self._pyarrow, _ = pyarrow_modules()
        self._schema = _schema(self._pyarrow, columns)
        self._stream = self._pyarrow.ipc.new_stream(file, self._schema)

    def write(self, columns: Flat) -> None:
        arrays = [
            self._pyarrow.array(columns[field.name], type=field.type, from_pandas=True)  # NaN becomes null
            for field in self._schema
        ]
        self._stream.write_batch(self._pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._stream.close()


class ParquetOutput:
    """A row group for each part."""

    def __init__(self, file: BinaryIO | io.RawIOBase, columns: Sequence[Column]) -> None:
        self._pyarrow, parquet = pyarrow_modules()
        texts = [column.name for column in columns if column.kind == "text"]
        self._table = parquet.ParquetWriter(file, _schema(self._pyarrow, columns), use_dictionary=texts)

    def append(self, part: BinaryIO) -> None:
        rows = self._pyarrow.ipc.open_stream(part).read_all()
        if rows.num_rows:
            self._table.write_table(rows)

    def close(self) -> None:
        self._table.close()


def csv_of(columns: Iterable[NDArray[Any]]) -> bytes:
    return csv_lines(zip(*map(_cells, columns), strict=True))


def _cells(column: NDArray[Any]) -> Sequence[object]:
    """Numbers as JSON writes them; an empty cell where there is none."""
    if column.dtype != np.float64:
        cells: Sequence[object] = column.tolist()
        return cells
    return msgspec.json.encode(column.tolist())[1:-1].replace(b"null", b"").decode().split(",") if column.size else []


def _schema(pyarrow: ModuleType, columns: Sequence[Column]) -> Any:
    return pyarrow.schema([(column.name, pyarrow.type_for_alias(ARROW_TYPES[column.kind])) for column in columns])
