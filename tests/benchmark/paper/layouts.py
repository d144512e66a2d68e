"""One made-up table of three rows in the layouts of the five UCI archives.

`three_rows.xls` was made with xlwt 1.3.0, which is not a requirement:

    book = xlwt.Workbook()
    first, second = book.add_sheet("Sheet1"), book.add_sheet("Sheet2")
    second.write(0, 0, "another sheet")
    for i, row in enumerate([("Sex", "Height", "Rings"), (2.0, 0.101, 15.0), (0.0, 0.35, 7.0), (1.0, 0.2, 9.0)]):
        for j, value in enumerate(row):
            first.write(i, j, value)
    book.save("three_rows.xls")
"""

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from app.benchmark.paper.data import BY_NAME, DataSet, content_digest

COLUMNS = ("Sex", "Height", "Rings")
DIGEST = content_digest(np.array([[2, 0.101, 15], [0, 0.35, 7], [1, 0.2, 9]]))

EXCEL = Path(__file__).with_name("three_rows.xls").read_bytes()

MEMBERS = {
    "Abalone": b"M,0.101,15\nF,0.35,7\nI,0.2,9\n",
    "Concrete": EXCEL,
    "SynMachine": b"Iy;PF;If\r\n2;0,101;15\r\n0;0,35;7\r\n1;0,2;9\r\n",
    "Toxicity": b"\xef\xbb\xbf2;0.101;15\n0;0.350;7\n1;0.2;9\n",
    "Yacht": b"2 0.101  15 \n0  0.35 7\n1 0.2 9\n\n \n",
}


def small(name: str) -> DataSet:
    """The set of that name and layout, as if the made-up table were its own."""
    return replace(BY_NAME[name], columns=COLUMNS, rows=3, digest=DIGEST)


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def archive_of(name: str) -> bytes:
    return zipped({"Readme.txt": b"of no interest", BY_NAME[name].archive.member: MEMBERS[name]})
