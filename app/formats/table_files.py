"""Tables as CSV or Parquet, chosen by the suffix of the file, read in blocks of columns and in parts.

A part is a stretch of rows that can be read without reading those before it. The files are opened by the caller.
Parquet needs pyarrow, which a serving installation leaves out.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import filterfalse, islice
from pathlib import PurePath
from types import ModuleType
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidTable, NotInstalled
from app.files import CsvRecords, is_blank

CSV, PARQUET = ".csv", ".parquet"
PANDAS_INDEX = re.compile(r"__index_level_\d+__", re.ASCII)  # the row numbers that pandas adds when it writes a frame
RAGGED = ""  # the column of a block that says which rows do not have as many cells as the header

Numbers = NDArray[np.float64] | NDArray[np.integer[Any]]
Cells = Sequence[object] | Numbers  # an array of floats has NaN for empty cells, one of integers none; else None or ""
Columns = dict[str, Cells]  # all of the same length
Flat = dict[str, NDArray[Any]]  # columns of equal length; NaN in numbers and None in texts for empty cells


class Column(NamedTuple):
    name: str
    kind: Literal["text", "number", "integer"]
    meaning: str


class Part(NamedTuple):
    number: int
    first: int  # index of its first row; blank lines do not count
    rows: int
    start: int  # where to begin to read: a byte of a CSV, a row of Parquet


class Table(Protocol):
    columns: list[str]

    def parts(self, rows: int) -> list[Part]:
        """Of so many rows each; the last one may have fewer."""

    def blocks(self, part: Part, rows: int) -> Iterator[Columns]:
        """A part, so many rows at a time."""


def check_suffixes(*paths: PurePath) -> None:
    for path in paths:
        if path.suffix.lower() not in (CSV, PARQUET):
            raise InvalidTable([f"{path.name} must end in {CSV} or {PARQUET}."])


def read_table(path: PurePath, file: BinaryIO) -> Table:
    """Raises InvalidTable for what is no table, and OSError for what cannot be read."""
    return CsvTable(file) if path.suffix.lower() == CSV else ParquetTable(file)


class CsvTable:
    """UTF-8, commas, a header; blank lines are left out."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.columns = [name.strip() for name in next(self._records(0), [])]

    def parts(self, rows: int) -> list[Part]:
        """Reads the whole file: only a parser finds out which line ends a record."""
        found: list[Part] = []
        first = count = start = 0
        records = self._records(0)
        next(records, None)
        for record in records:
            count += not is_blank(record)
            if count >= rows and (offset := records.offset) is not None:
                found.append(Part(len(found), first, count, start))
                first, count, start = first + count, 0, offset
        return [*found, Part(len(found), first, count, start)] if count else found

    def blocks(self, part: Part, rows: int) -> Iterator[Columns]:
        records = self._records(part.start)
        if part.start == 0:
            next(records, None)  # the header
        filled = islice(filterfalse(is_blank, records), part.rows)
        while block := list(islice(filled, rows)):
            yield self._columns_of(block)

    def _records(self, start: int) -> CsvRecords:
        self._file.seek(start)
        return CsvRecords(self._file)

    def _columns_of(self, block: list[list[str]]) -> Columns:
        width = len(self.columns)
        lengths: list[object] = [len(record) for record in block]
        if all(length == width for length in lengths):
            return dict(zip(self.columns, zip(*block, strict=True), strict=True))
        padded = [[*record, *[""] * (width - len(record))][:width] for record in block]
        columns: Columns = dict(zip(self.columns, zip(*padded, strict=True), strict=True))
        return {**columns, RAGGED: [None if length == width else length for length in lengths]}


class ParquetTable:
    def __init__(self, file: BinaryIO) -> None:
        self._pyarrow, parquet = pyarrow_modules()
        try:
            self._table = parquet.ParquetFile(file)
        except self._pyarrow.ArrowInvalid as error:
            raise InvalidTable(["The file is not Parquet."]) from error
        names, metadata = self._table.schema_arrow.names, self._table.metadata
        self.columns: list[str] = [name for name in names if not PANDAS_INDEX.fullmatch(name)]
        self._group_rows = [int(metadata.row_group(k).num_rows) for k in range(metadata.num_row_groups)]

    def parts(self, rows: int) -> list[Part]:
        total = sum(self._group_rows)
        firsts = range(0, total, rows)
        return [Part(k, first, min(rows, total - first), first) for k, first in enumerate(firsts)]

    def blocks(self, part: Part, rows: int) -> Iterator[Columns]:
        """Reads only the row groups of the part. Of the first one, the rows before the part are read and dropped."""
        groups, skip = self._groups_of(part)
        left = part.rows
        try:
            for batch in self._table.iter_batches(rows, row_groups=groups, columns=self.columns):
                taken = batch.slice(skip, left)
                skip, left = max(skip - batch.num_rows, 0), left - taken.num_rows
                if taken.num_rows:
                    yield {name: self._cells(taken.column(name)) for name in self.columns}
                if not left:
                    return
        except (self._pyarrow.ArrowException, OSError) as error:
            raise InvalidTable(["The file is damaged: not all of its rows can be read."]) from error

    def _cells(self, column: Any) -> Cells:
        """Numbers as an array, unless one is NaN in the file: that is not a cell without a number.

        Integers stay integers, and what is no value of a measurement in Python stays Arrow's own: nothing is rounded.
        """
        types, kind = self._pyarrow.types, column.type
        if types.is_integer(kind) and not column.null_count:
            integers: NDArray[np.integer[Any]] = column.to_numpy(zero_copy_only=False)
            return integers
        if types.is_floating(kind):
            numbers: NDArray[np.float64] = column.cast("float64").to_numpy(zero_copy_only=False)
            if np.count_nonzero(np.isnan(numbers)) == column.null_count:
                return numbers
        if types.is_temporal(kind) or isinstance(kind, self._pyarrow.BaseExtensionType):
            return [cell if cell.is_valid else None for cell in column]
        is_text = types.is_string(kind) or types.is_large_string(kind)
        cells: list[object] = (column.to_numpy(zero_copy_only=False) if is_text else column).tolist()
        return cells

    def _groups_of(self, part: Part) -> tuple[list[int], int]:
        """The row groups from the first to the last row of the part, and how many rows lie before it in the first."""
        groups: list[int] = []
        skip = begin = 0
        for k, rows in enumerate(self._group_rows):
            if begin < part.start + part.rows and part.start < begin + rows:
                skip = skip if groups else part.start - begin
                groups.append(k)
            begin += rows
        return groups, skip


def pyarrow_modules() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise NotInstalled("pyarrow for Parquet files", "files") from error
    return pyarrow, pyarrow.parquet
