import io
from collections.abc import Iterator
from typing import Any

import pytest

from app.formats.score_table import validate_table
from app.formats.table_files import RAGGED, Columns, CsvTable, ParquetTable, Part, Table

QUOTED = '\ufeffid , site\r\n"a, b",x\r\n\r\n ,\r\n"c\nd",y'.encode()


def csv_table(content: bytes) -> CsvTable:
    return CsvTable(io.BytesIO(content))


def parquet_table(columns: dict[str, list[Any]], group_rows: int) -> ParquetTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, row_group_size=group_rows)
    return ParquetTable(file)


def rows(blocks: Iterator[Columns]) -> list[dict[str, object]]:
    return [dict(zip(block, row, strict=True)) for block in blocks for row in zip(*block.values(), strict=True)]


def whole(table: Table, part_rows: int, block_rows: int = 3) -> list[dict[str, object]]:
    return [row for part in table.parts(part_rows) for row in rows(table.blocks(part, block_rows))]


def test_a_mark_blank_lines_and_quotes_are_understood() -> None:
    table = csv_table(QUOTED)
    assert table.columns == ["id", "site"]
    assert whole(table, 10) == [{"id": "a, b", "site": "x"}, {"id": "c\nd", "site": "y"}]
    assert table.parts(10) == [Part(0, 0, 2, 0)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("part_rows", [1, 2, 3, 7, 100])
def test_the_parts_of_a_csv_hold_every_row_once_and_in_order(end: str, part_rows: int) -> None:
    lines = [f'{k},"one{end}two"' if k % 3 else f"{k},é" for k in range(20)]
    table = csv_table(end.join(["id,site", "", *lines[:9], "", ",", *lines[9:]]).encode())
    found = whole(table, part_rows)
    assert [row["id"] for row in found] == [str(k) for k in range(20)]
    parts = table.parts(part_rows)
    assert [part.first for part in parts] == [sum(one.rows for one in parts[:k]) for k in range(len(parts))]
    if end != "\r":  # such a file is a single line for everything that reads lines of bytes
        assert {part.rows for part in parts[:-1]} <= {part_rows}


@pytest.mark.parametrize("group_rows", [1, 4, 7, 100])
@pytest.mark.parametrize("part_rows", [1, 3, 8, 100])
def test_the_parts_of_parquet_hold_every_row_once_and_in_order(group_rows: int, part_rows: int) -> None:
    table = parquet_table({"id": list(range(25)), "__index_level_0__": [0] * 25}, group_rows)
    assert whole(table, part_rows) == [{"id": k} for k in range(25)]


def test_a_table_without_rows_has_no_parts() -> None:
    assert csv_table(b"id,site\n\n").parts(10) == []
    assert parquet_table({"id": []}, 10).parts(10) == []


def test_a_ragged_row_keeps_what_it_has_and_is_rejected() -> None:
    for line in (b"7,SoV,55", b"7,SoV,55,male,1,2"):
        table = csv_table(b"id,site,age_years,sex\n8,AA,50,male\n" + line)
        (block,) = table.blocks(table.parts(10)[0], 10)
        assert block[RAGGED] == [None, len(line.split(b","))]
        found = validate_table(block)
        assert (found.ids[1], [error.code for error in found.errors[1]]) == ("7", ["ragged_row"])
