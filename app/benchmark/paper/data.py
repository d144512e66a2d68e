"""The five UCI data sets as numbers: from a folder, or downloaded into a cache. Always checked against a digest.

None of them is part of this repository. UCI hands each out as a table in a ZIP archive, in a layout of its own.
"""

import csv
import hashlib
import http.client
import io
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from app.files import replace_file
from app.maths.moments import Array

ADDRESS = "https://archive.ics.uci.edu/static/public/"
TIMEOUT_SECONDS = 60.0
MAX_BYTES = 10_000_000  # the largest table has under 200,000, and little lies beside it
MAX_MEMBER_BYTES = 2_000_000  # bytes unpacked; Abalone, the largest, has under 200,000
# The compression of UCI's archives. Only these two unpack in steps, so that the limit holds while unpacking, too.
COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Abalone's sex is written as a letter by UCI and as a number by others; alphabetical order is what both agree on.
LETTERS = {"F": 0.0, "I": 1.0, "M": 2.0}


@dataclass(frozen=True, slots=True)
class Archive:
    """Where UCI has a set, and the layout of its table.

    UCI also has many sets as a `data.csv` in one layout, but not all five, and Concrete only to two decimals.
    """

    path: str  # on UCI's site
    member: str  # the file inside that holds the table; old Excel if the name ends in .xls
    header: bool = False  # whether its first row names the columns
    separator: str | None = ","  # between the cells of a row; None is any white space
    decimal: str = "."


@dataclass(frozen=True, slots=True)
class DataSet:
    name: str
    file: str  # in a folder of data
    columns: tuple[str, ...]  # the last is the target, every other one a context
    rows: int
    anomalies: int  # injected into the whole set
    archive: Archive
    digest: str  # SHA-256 of the numbers, see `content_digest`; the bytes of a file may differ


SETS = (
    DataSet(
        "Abalone",
        "abalone.csv",
        (
            "Sex",
            "Length",
            "Diameter",
            "Height",
            "Whole weight",
            "Shucked weight",
            "Viscera weight",
            "Shell weight",
            "Rings",
        ),
        4177,
        100,
        Archive("1/abalone.zip", "abalone.data"),
        "aa46c13b648de082c05980253911947b4a824abe08a8adfff70a6e870c8b801c",
    ),
    DataSet(
        "Concrete",
        "Concrete.csv",
        ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "Age", "Strength"),
        1030,
        50,
        Archive("165/concrete+compressive+strength.zip", "Concrete_Data.xls", header=True),
        "b3988db3b4ea301bc59ab427484ef18519ebb6ed89e0975f2d86cb4ca8be6d9d",
    ),
    DataSet(
        "SynMachine",
        "synchronousMachine.csv",
        ("Iy", "PF", "e", "dIf", "If"),
        557,
        50,
        Archive(
            "607/synchronous+machine+data+set.zip",
            "synchronous machine.csv",
            header=True,
            separator=";",
            decimal=",",
        ),
        "b1c2591f65e34116c2d65ea95f924d407ffe72f97eb2d37dbfbeac03a2192427",
    ),
    DataSet(
        "Toxicity",
        "toxicity.csv",
        ("CIC0", "SM1_Dz", "GATS1i", "NdsCH", "NdssC", "MLOGP", "LC50"),
        908,
        50,
        Archive("504/qsar+fish+toxicity.zip", "qsar_fish_toxicity.csv", separator=";"),
        "9ae48e7bf95db115ada59231eb1356360c78313b6154dfc05d0184c325b3a76d",
    ),
    DataSet(
        "Yacht",
        "yachtHydrodynamics.csv",
        (
            "Longitudinal_position",
            "Prismatic_coefficient",
            "Length_displacement_ratio",
            "Beam_draught_ratio",
            "Length_beam_ratio",
            "Froude_number",
            "resistance",
        ),
        308,
        30,
        Archive("243/yacht+hydrodynamics.zip", "yacht_hydrodynamics.data", separator=None),
        "9094835a50254fe3c7a325f1c3dee71dbda663bbd36f7015789a24b753147de2",
    ),
)
BY_NAME = {one.name: one for one in SETS}


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    X: Array  # [N, D] contexts, as published
    y: Array  # [N] the target, scaled to [0, 1]
    digest: str


class ArchiveRefused(ValueError):
    """Why the archive is not the one that was expected, as a clause."""


class DataUnavailable(OSError):
    """An OSError, because the command line prints that as one sentence."""


def load(wanted: DataSet, folder: Path | None, cache: Path) -> Table:
    """From `folder` if one is given, else from the cache, downloaded on the first use."""
    path = folder / wanted.file if folder else fetch(wanted, cache)
    if not path.is_file():
        raise DataUnavailable(f"{wanted.file} is not in the folder of data.")
    try:
        numbers = _checked(path, wanted)
    except DataUnavailable as error:
        if folder:
            raise
        remedy = f"delete {path} to download it again, or name a folder that holds {wanted.file} with --data."
        raise DataUnavailable(f"{str(error).rstrip('.')}; {remedy}") from error
    y = numbers[:, -1]
    return Table(wanted.name, numbers[:, :-1], (y - y.min()) / (y.max() - y.min()), wanted.digest)


def read(text: str, wanted: DataSet) -> Array:
    """[N, D + 1] with the target last. A first column without a name counts the rows and is left out."""
    try:
        rows = [row for row in csv.reader(text.splitlines()) if row]
        skip = 1 if rows and not rows[0][0].strip() else 0
        numbers = np.array([_numbers(row[skip:]) for row in rows[1:]])
    except (ValueError, csv.Error) as error:
        raise DataUnavailable(f"The table of {wanted.name} has a cell that is not a number.") from error
    if numbers.ndim != 2 or len(numbers) != wanted.rows:
        raise DataUnavailable(f"The table of {wanted.name} has {len(numbers)} rows instead of {wanted.rows}.")
    return numbers


def content_digest(numbers: Array) -> str:
    """Of ten significant digits, so that 0.101 and 0.10099999999999999 are the same number."""
    lines = (",".join(f"{value:.10g}" for value in row) for row in numbers)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _checked(path: Path, wanted: DataSet) -> Array:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataUnavailable(f"{path.name} is not text.") from error
    numbers = read(text, wanted)
    digest = content_digest(numbers)
    if digest != wanted.digest:
        raise DataUnavailable(f"{path.name} does not hold the numbers of the UCI set {wanted.name} (digest {digest}).")
    return numbers


def _numbers(cells: Sequence[str]) -> list[float]:
    return [LETTERS[cell] if cell in LETTERS else float(cell) for cell in cells]


def fetch(wanted: DataSet, cache: Path, address: str = ADDRESS) -> Path:
    """The cached file, downloaded if it is not there yet."""
    path = cache / wanted.file
    if path.is_file():
        return path
    try:
        table = plain_table(_download(address + wanted.archive.path), wanted)
    except (OSError, ArchiveRefused) as error:  # no network, no such page, another archive
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = f"{wanted.name} could not be downloaded from UCI ({getattr(error, 'reason', None) or error})"
        raise DataUnavailable(f"{reason}; name a folder that holds {wanted.file} with --data.") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, table.encode())
    return path


def _download(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 (a constant address)
            data: bytes = answer.read(MAX_BYTES + 1)
    except http.client.HTTPException as error:  # no OSError, and its text is whatever the server wrote
        raise ArchiveRefused("the answer is not HTTP") from error
    if len(data) > MAX_BYTES:
        raise ArchiveRefused(f"the archive is larger than {MAX_BYTES} bytes")
    return data


def plain_table(data: bytes, wanted: DataSet) -> str:
    """CSV as in a folder of data: a header, commas, decimal points. Does not check the numbers."""
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
    except Exception as error:  # damaged bytes make zipfile raise more than its own errors
        raise ArchiveRefused("what came is not a whole ZIP archive") from error


def _unpacked(archive: zipfile.ZipFile, name: str) -> bytes:
    """The file of that name, in capitals or not, in whatever folder: such things change over the years."""
    found = next((one for one in archive.infolist() if _is_named(one, name)), None)
    if found is None:
        raise ArchiveRefused(f"the archive holds no file {name}")
    if found.compress_type not in COMPRESSION:
        raise ArchiveRefused(f"{name} is packed in a way that UCI does not use")
    with archive.open(found) as member:
        content = member.read(MAX_MEMBER_BYTES + 1)  # the size that the archive states may be a lie
    if len(content) > MAX_MEMBER_BYTES:
        raise ArchiveRefused(f"{name} is larger than {MAX_MEMBER_BYTES} bytes")
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
    except Exception as error:  # xlrd too raises more than its own errors
        raise ArchiveRefused(f"{name} is not a whole Excel file") from error
