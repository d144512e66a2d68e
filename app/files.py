"""Files: written whole or not at all, and CSV read strictly.

`new_file` refuses a name that is taken; `create_file` leaves an existing file alone; `replace_file` replaces it.
"""

import csv
import io
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from app.errors import FileExists, InvalidTable, NormalcyError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# Python's own float() also takes "1_000", "nan" and Arabic digits; none of them is a measurement.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Write to it; when the block succeeds, the file is on disk under its name. If the block raises, no file is left.

    Readable by its owner only, because it may contain patients' values. Raises FileExists, or NormalcyError if it
    cannot be written. Any other exception of the block, for example from reading another file, is passed on unchanged.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with _reporting_failure(path):
        _reserve(path)
    try:
        with _reporting_failure(path):
            raw = _ReportingFile(path, os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with io.BufferedRandom(raw) as file:
            yield file
            file.flush()
            with _reporting_failure(path):
                os.fsync(file.fileno())
        with _reporting_failure(path):
            os.replace(temporary, path)
    except BaseException:
        for left in (temporary, path):
            left.unlink(missing_ok=True)
        raise


def create_file(path: Path, content: bytes) -> None:
    """On disk (synchronised) under its name, unless there is a file already; readable by its owner alone.

    Of several processes at once, one creates it, and no other ever sees a part of it. Needs hard links.
    """
    with _temporary_file(path, content) as temporary, suppress(FileExistsError):
        os.link(temporary, path)


def replace_file(path: Path, content: bytes) -> None:
    """On disk (synchronised) under its name, or not at all; readable by its owner alone."""
    with _temporary_file(path, content) as temporary:
        os.replace(temporary, path)


@contextmanager
def _temporary_file(path: Path, content: bytes) -> Iterator[Path]:
    """A file beside `path` with this content, for this block."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def csv_records(file: BinaryIO) -> Iterator[list[str]]:
    """The records of a CSV in UTF-8, their cells stripped. A blank line is an empty record, so that records count rows.

    Raises InvalidTable, with the row, for what is not CSV or not UTF-8.
    """
    row = 1
    try:
        for record in csv.reader(_lines(file), strict=True):
            yield [cell.strip() for cell in record]
            row += 1
    except csv.Error as error:
        raise InvalidTable([f"Row {row} is not valid CSV: look for a quotation mark that does not close."]) from error
    except UnicodeDecodeError as error:
        raise InvalidTable([f"The file is not UTF-8 text (first seen in row {row}): save it as CSV UTF-8."]) from error


def decimal_number(text: str) -> float | None:
    return float(text) if NUMBER.fullmatch(text) else None


def has_decimal_comma(text: str) -> bool:
    return DECIMAL_COMMA.fullmatch(text.strip()) is not None


def _lines(file: BinaryIO) -> Iterator[str]:
    """Not by a TextIOWrapper, which would close the caller's file when it is deleted."""
    # A byte order mark is skipped: Excel's "CSV UTF-8" writes one, and no number depends on it.
    encoding = "utf-8-sig"
    for line in file:
        yield from io.StringIO(line.decode(encoding), newline="")  # splits at a lone carriage return too
        encoding = "utf-8"


class _ReportingFile(io.FileIO):
    """Turns every failed write into a sentence, also one that happens when a buffer is flushed."""

    def __init__(self, path: Path, descriptor: int) -> None:
        super().__init__(descriptor, "r+b")
        self._path = path

    def write(self, data: "ReadableBuffer", /) -> int:
        with _reporting_failure(self._path):
            return super().write(data)


@contextmanager
def _reporting_failure(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NormalcyError(f"{path} cannot be written: {error.strerror}.") from error


def _reserve(path: Path) -> None:
    """Creates the empty file, so that only one of two concurrent runs goes on. Works without hard links, too."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError as error:
        raise FileExists(str(path)) from error
