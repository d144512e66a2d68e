"""Rows of a CSV that arrives line by line, against the parser that reads a whole one."""

import csv
import itertools

from app.formats.csv_stream import CsvStream, Record


def rows(text: str) -> list[Record]:
    stream = CsvStream(max_row_bytes=1000)
    stream.columns = ["given already"]
    return stream.read(text.encode().split(b"\n")) + stream.finish()


def test_rows_end_where_the_parser_ends_them() -> None:
    compared = 0
    for length in range(8):
        for characters in itertools.product('a",\n', repeat=length):
            text = "".join(characters)
            try:
                parsed = list(csv.reader(text.splitlines(keepends=True), strict=True))
            except csv.Error:
                continue
            assert rows(text) == [row for row in parsed if "".join(row).strip()], text
            compared += 1
    assert compared > 10_000


def test_a_quotation_mark_within_a_cell_takes_no_other_row_with_it() -> None:
    assert rows('a,5"\nb,6') == [["a", '5"'], ["b", "6"]]
    broken, *rest = rows('a"b,"c"d\ne,f')
    assert not isinstance(broken, list)
    assert rest == [["e", "f"]]
