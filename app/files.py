"""Files: written whole or not at all; CSV, read strictly.

`new_file` refuses a name that is taken; `create_file` leaves an existing file alone; `replace_file` replaces it;
`publish_file` gives a finished file its name. `scratch_file` is for what may be lost with the machine.
"""

import csv
import fcntl
import hashlib
import io
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from app.errors import FileExists, InvalidTable, NormalcyError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# Python's own float() also takes "1_000", "nan" and Arabic digits; none of them is a measurement.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)

OTHERS = 0o077  # permissions of everybody but the owner of a file


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


@contextmanager
def scratch_file(path: Path) -> Iterator[BinaryIO]:
    """Appears under its name when the block succeeds, but perhaps not on disk; readable by its owner alone."""
    with _temporary_file(path) as (temporary, file):
        yield file
        file.close()
        os.replace(temporary, path)


def create_file(path: Path, content: bytes) -> None:
    """On disk (synchronised) under its name, unless there is a file already; readable by its owner alone.

    Of several processes at once, one creates it, and no other ever sees a part of it. Needs hard links.
    """
    with _synchronised_file(path, content) as temporary, suppress(FileExistsError):
        os.link(temporary, path)


def private_content(path: Path) -> bytes:
    """Of a secret that this program created. Raises NormalcyError if anyone but its owner can read or change it."""
    if path.stat().st_mode & OTHERS:
        raise NormalcyError(f"{path} is a secret that other users of this machine can read: run chmod 600 on it.")
    return path.read_bytes()


def append_line(path: Path, line: bytes) -> None:
    """On disk (synchronised) when this returns; readable by its owner alone. Raises OSError and adds nothing otherwise.

    Lines of several processes never mix. What a crash left of the last line is removed; where that is not permitted,
    the new line begins after it.
    """
    handle = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not _ends_with_line(handle):
            try:
                os.ftruncate(handle, path.read_bytes().rfind(b"\n") + 1)
            except PermissionError:  # the file can only be appended to
                line = b"\n" + line
        end = os.fstat(handle).st_size
        try:
            _write_all(handle, line)
            os.fsync(handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle, end)
            raise
    finally:
        os.close(handle)


def replace_file(path: Path, content: bytes) -> None:
    """On disk (synchronised) under its name, or not at all; readable by its owner alone."""
    with _synchronised_file(path, content) as temporary:
        os.replace(temporary, path)


def publish_file(finished: Path, path: Path) -> None:
    """Give a finished file of the same file system its name. Raises FileExists if the name is taken by other bytes.

    The same bytes under the name are what a run left that ended right after this step.
    """
    if path.exists() and file_digest(path) == file_digest(finished):
        return
    try:
        os.link(finished, path)
    except FileExistsError as error:
        raise FileExists(str(path)) from error
    except OSError:  # a file system without hard links
        with _reporting_failure(path):
            _reserve(path)
            os.replace(finished, path)


def synchronise(path: Path) -> None:
    """Put a file on disk, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_digest(path: Path) -> str:
    """SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class HashedFile(io.RawIOBase):
    """Hashes what is written to a file from its beginning to its end, so that it need not be read again."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest = file, hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Of what has been written, in hexadecimal."""
        return self._digest.hexdigest()

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        self._digest.update(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()


def _ends_with_line(handle: int) -> bool:
    size = os.fstat(handle).st_size
    return size == 0 or os.pread(handle, 1, size - 1) == b"\n"


def _write_all(handle: int, content: bytes) -> None:
    """A disk that is nearly full takes a part of it, and raises OSError for the rest."""
    while content:
        content = content[os.write(handle, content) :]


@contextmanager
def _synchronised_file(path: Path, content: bytes) -> Iterator[Path]:
    """A file beside `path` with this content, on disk, for this block."""
    with _temporary_file(path) as (temporary, file):
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        yield temporary


@contextmanager
def _temporary_file(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """An empty file beside `path`, removed at the end of the block unless it has got another name."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b") as file:
            yield temporary, file
    finally:
        temporary.unlink(missing_ok=True)


class CsvRecords:
    """The records of a CSV in UTF-8, as written. A blank line is an empty record, so that records count rows.

    Raises InvalidTable, with the row, for what is not CSV or not UTF-8.
    """

    def __init__(self, file: BinaryIO) -> None:
        """From the file's position on."""
        self._file, self._row = file, 1
        # A byte order mark is skipped: Excel's "CSV UTF-8" writes one, and no number depends on it.
        self._encoding = "utf-8-sig" if file.tell() == 0 else "utf-8"
        self._is_line_end = True
        self._reader = csv.reader(self._lines(), strict=True)

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        try:
            record = next(self._reader)
        except csv.Error as error:
            where = f"Row {self._row} is not valid CSV"
            raise InvalidTable([f"{where}: look for a quotation mark that does not close."]) from error
        except UnicodeDecodeError as error:
            where = f"first seen in row {self._row}"
            raise InvalidTable([f"The file is not UTF-8 text ({where}): save it as CSV UTF-8."]) from error
        self._row += 1
        return record

    @property
    def offset(self) -> int | None:
        """Where the next record begins, in bytes; None if that is not the beginning of a line."""
        return self._file.tell() if self._is_line_end else None

    def _lines(self) -> Iterator[str]:
        """Not by a TextIOWrapper, which would close the caller's file when it is deleted."""
        for line in self._file:
            text = line.decode(self._encoding)
            self._encoding = "utf-8"
            parts = list(io.StringIO(text, newline="")) if "\r" in text else [text]  # split at a lone carriage return
            for part in parts[:-1]:
                self._is_line_end = False
                yield part
            self._is_line_end = True
            yield from parts[-1:]


def csv_lines(records: Iterable[Sequence[object]]) -> bytes:
    """Lone surrogates, which only damaged rows of the audit contain, are escaped."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(records)
    return text.getvalue().encode("utf-8", "backslashreplace")


def is_blank(record: Iterable[str]) -> bool:
    """Whether no cell holds anything but spaces."""
    return not "".join(record).strip()


def decimal_number(text: str) -> float | None:
    return float(text) if NUMBER.fullmatch(text) else None


def has_decimal_comma(text: str) -> bool:
    return DECIMAL_COMMA.fullmatch(text.strip()) is not None


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
