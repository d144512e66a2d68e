"""Tables as CSV, row by row: UTF-8, commas, a header. The file is opened by the caller."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from app.errors import InvalidTable
from app.formats.reading_row import RAGGED

Row = dict[str, object]


class CsvReader:
    """`columns` at once, then the rows, blank lines left out."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, max(size, 1)
        self._records = _named_faults(csv.reader(_lines(file), strict=True))
        self.columns = next(self._records, [])

    def __iter__(self) -> Iterator[Row]:
        for record in self._records:
            ragged = {} if len(record) == len(self.columns) else {RAGGED: len(record)}
            if any(record):
                yield {**dict(zip(self.columns, record, strict=False)), **ragged}

    def share(self) -> float:
        """How much of the file is behind us."""
        return min(1.0, self._file.tell() / self._size)


class CsvWriter:
    def __init__(self, file: BinaryIO, columns: Sequence[str]) -> None:
        self._file, self._columns = file, columns
        self._write([columns])

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._write([[row[name] for name in self._columns] for row in rows])

    def close(self) -> None:
        """There is nothing to add at the end of a CSV."""

    def _write(self, records: Sequence[Sequence[object]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(records)
        self._file.write(text.getvalue().encode())


def _lines(file: BinaryIO) -> Iterator[str]:
    """Not by a TextIOWrapper, which would close the caller's file when it goes."""
    # A byte order mark passes without a word: Excel's "CSV UTF-8" writes one, and no number depends on it.
    yield file.readline().decode("utf-8-sig")
    for line in file:
        yield line.decode()


def _named_faults(records: Iterator[list[str]]) -> Iterator[list[str]]:
    """The records with their cells stripped; what is no table is refused as a whole."""
    number = 0
    try:
        for record in records:
            number += 1
            yield [cell.strip() for cell in record]
    except csv.Error as error:
        problem = f"Row {number + 1} is not valid CSV: look for a quotation mark that does not close."
        raise InvalidTable([problem]) from error
    except UnicodeDecodeError as error:
        raise InvalidTable([f"The file is not UTF-8 text (after row {number}): save it as CSV UTF-8."]) from error
