"""CSV that arrives line by line: rows as soon as they are whole, and what is wrong with a header."""

import csv
import re
from collections.abc import Iterable, Sequence

from app.errors import FieldError, LineTooLong
from app.files import is_blank
from app.formats.score_table import KNOWN, OTHER_SEPARATOR, OTHER_SEPARATORS, REQUIRED
from app.formats.table_files import RAGGED, Columns
from app.schemas.request_columns import SITE
from app.schemas.validation import did_you_mean, field_error

Record = list[str] | FieldError  # the cells of a row, or what is wrong with it

MARK = b"\xef\xbb\xbf"  # Excel's "CSV UTF-8" begins with it
NOT_CSV = field_error("syntax", "", "The row is not valid CSV: look for a quotation mark that does not close.")
NOT_UTF8 = field_error("wrong_encoding", "", "The row is not UTF-8 text: send the table as CSV UTF-8.")
# From the beginning of a row to the end of a line inside a cell in quotation marks. Such a cell begins with one; in any
# other cell a quotation mark is a character like any other, as for the parser.
_OPEN_CELL = rb'"[^"]*+(?:""[^"]*+)*+'
_ENDS_IN_CELL = re.compile(rb'(?:(?:%b"[^,]*+|[^",][^,]*+)?+,)*+%b' % (_OPEN_CELL, _OPEN_CELL))


class CsvStream:
    """Collects lines into rows: a cell in quotation marks may contain line breaks."""

    def __init__(self, max_row_bytes: int) -> None:
        self.columns: list[str] = []
        self._max_row_bytes, self._open = max_row_bytes, b""

    def read(self, lines: Iterable[bytes]) -> list[Record]:
        """The rows that these lines complete, blank ones left out. Raises LineTooLong."""
        found: list[Record] = []
        for line in lines:
            record = self._open + line
            if self._is_open_after(line):
                self._open = record + b"\n"
                if len(self._open) > self._max_row_bytes:
                    raise LineTooLong
                continue
            self._open = b""
            found += self._row(record)
        return found

    def finish(self) -> list[Record]:
        """What is left at the end: a row whose quotation mark does not close, or nothing."""
        return [NOT_CSV] if self._open else []

    def _is_open_after(self, line: bytes) -> bool:
        """Whether the row goes on in the next line."""
        if self._open:
            return _ENDS_IN_CELL.fullmatch(b'"' + line) is not None
        return b'"' in line and _ENDS_IN_CELL.fullmatch(line) is not None

    def _row(self, record: bytes) -> list[Record]:
        try:
            text = (record if self.columns else record.removeprefix(MARK)).decode()
            cells = next(csv.reader([text.rstrip("\r")], strict=True), [])
        except UnicodeDecodeError:
            return [NOT_UTF8]
        except csv.Error:
            return [NOT_CSV]
        if is_blank(cells):
            return []
        if not self.columns:
            self.columns = [cell.strip() for cell in cells]
            return []
        return [cells]


def columns_of(names: Sequence[str], records: Sequence[Record]) -> Columns:
    """Records as `validate_table` takes them. Those with an error are ragged; the caller replaces their errors."""
    rows = [record if isinstance(record, list) else [] for record in records]
    padded = [[*row, *[""] * (len(names) - len(row))] for row in rows]
    columns: Columns = {name: [row[k] for row in padded] for k, name in enumerate(names)}
    return {**columns, RAGGED: [None if len(row) == len(names) else len(row) for row in rows]}


def header_errors(columns: Sequence[str]) -> list[FieldError]:
    """Columns that are missing, unknown or repeated. Unknown ones are counted, not named."""
    if len(columns) == 1 and any(separator in columns[0] for separator in OTHER_SEPARATORS):
        return [field_error("syntax", "", OTHER_SEPARATOR)]
    needed = (*REQUIRED, SITE)
    found = [field_error("missing", name, f"Column {name} is missing.") for name in needed if name not in columns]
    unknown = [name for name in columns if name not in KNOWN]
    if unknown:
        count = "1 column is" if len(unknown) == 1 else f"{len(unknown)} columns are"
        hint = did_you_mean(unknown, [name for name in KNOWN if name not in columns])
        found.append(field_error("unknown_field", "(unknown)", f"{count} not known.{hint} Known: {', '.join(KNOWN)}."))
    repeated = [name for name in KNOWN if columns.count(name) > 1]
    return found + [field_error("duplicate_key", name, f"Column {name} appears twice.") for name in repeated]
