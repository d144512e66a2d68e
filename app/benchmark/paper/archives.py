"""From the bytes of a UCI archive to a plain table: one layout for all sets. Pure: no network, no disk."""

import csv
import io
import zipfile
from collections.abc import Iterable
from pathlib import PurePosixPath

from app.benchmark.paper.sets import Archive, DataSet

LARGEST_MEMBER = 2_000_000  # bytes unpacked; Abalone, the largest, has under 200,000
# The methods of UCI's archives. Only these two unpack in steps, so that the limit holds while unpacking, too.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class ArchiveRefused(ValueError):
    """Why the archive is not the one that was expected, as a clause."""


def plain_table(data: bytes, wanted: DataSet) -> str:
    """CSV as in a folder of data: a header, commas, decimal points. Whether it holds the right numbers is not asked."""
    rows = _rows(_member(data, wanted.archive.member), wanted.archive)
    if other := [row for row in rows if len(row) != len(wanted.columns)]:
        counts = f"{len(other[0])} cells instead of {len(wanted.columns)}"
        raise ArchiveRefused(f"{wanted.archive.member} has a row of {counts}")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([wanted.columns, *rows])
    return text.getvalue()


def _member(data: bytes, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _unpacked(archive, name)
    except ArchiveRefused:
        raise
    except Exception as error:  # damaged bytes make it stumble in more ways than it has errors of its own
        raise ArchiveRefused("what came is not a whole ZIP archive") from error


def _unpacked(archive: zipfile.ZipFile, name: str) -> bytes:
    """The file of that name, in capitals or not, in whatever folder: such things change over the years."""
    found = next((one for one in archive.infolist() if _is_named(one, name)), None)
    if found is None:
        raise ArchiveRefused(f"the archive holds no file {name}")
    if found.compress_type not in METHODS:
        raise ArchiveRefused(f"{name} is packed in a way that UCI does not use")
    with archive.open(found) as member:
        content = member.read(LARGEST_MEMBER + 1)  # the size that the archive states may be a lie
    if len(content) > LARGEST_MEMBER:
        raise ArchiveRefused(f"{name} is larger than {LARGEST_MEMBER} bytes")
    return content


def _is_named(one: zipfile.ZipInfo, name: str) -> bool:
    return not one.is_dir() and PurePosixPath(one.filename).name.casefold() == name.casefold()


def _rows(member: bytes, archive: Archive) -> list[list[str]]:
    cells = _excel(member, archive.member) if archive.member.endswith(".xls") else _text(member, archive)
    rows = [row for row in cells if any(row)]  # an empty line at the end is not a row
    return rows[1:] if archive.header else rows


def _text(member: bytes, archive: Archive) -> Iterable[list[str]]:
    try:
        lines = member.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ArchiveRefused(f"{archive.member} is not text") from error
    for line in lines:
        yield [cell.strip().replace(archive.decimal, ".") for cell in line.split(archive.separator)]


def _excel(member: bytes, name: str) -> Iterable[list[str]]:
    import xlrd  # here, because four of the five sets do without

    try:
        # It would write its warnings to the standard output.
        sheet = xlrd.open_workbook(file_contents=member, logfile=io.StringIO()).sheet_by_index(0)
        return [[str(value).strip() for value in sheet.row_values(row)] for row in range(sheet.nrows)]
    except Exception as error:  # the same holds for this one
        raise ArchiveRefused(f"{name} is not a whole Excel file") from error
