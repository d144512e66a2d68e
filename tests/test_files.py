import io
import resource
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.errors import FileExists, InvalidTable, NormalcyError
from app.files import (
    CsvRecords,
    append_line,
    create_file,
    decimal_number,
    has_decimal_comma,
    is_blank,
    new_file,
    replace_file,
)


def test_a_file_appears_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with new_file(path) as file:
        file.write(b"half ")
        assert path.read_bytes() == b""
        file.write(b"and half")
    assert path.read_bytes() == b"half and half"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def write_half() -> None:
        with new_file(tmp_path / "out.csv") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_does_not_fit_on_the_disk_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    append_line(path, b"first\n")
    with full_disk(), pytest.raises(OSError, match="too large"):
        append_line(path, b"x" * 5000 + b"\n")
    assert path.read_bytes() == b"first\n"
    append_line(path, b"second\n")
    assert path.read_bytes() == b"first\nsecond\n"


def test_what_a_crash_left_of_a_line_is_not_joined_with_the_next(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    for left in (b"", b"first\n", b"first\nsec", b"fir"):
        path.write_bytes(left)
        append_line(path, b"next\n")
        assert path.read_bytes() == left[: left.rfind(b"\n") + 1] + b"next\n"


def test_lines_of_several_threads_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    lines = [bytes([letter]) * 3000 + b"\n" for letter in b"abcdefgh"] * 5
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda line: append_line(path, line), lines))
    assert sorted(path.read_bytes().splitlines(keepends=True)) == sorted(lines)


def test_what_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("mine")
    with pytest.raises(FileExists), new_file(path):
        pytest.fail("the block must not run")
    assert path.read_text() == "mine"


def test_of_two_writers_one_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with new_file(path) as first:
        with pytest.raises(FileExists), new_file(path):
            pytest.fail("the block must not run")
        first.write(b"first")
    assert path.read_bytes() == b"first"


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NormalcyError, match="cannot be written: No such file"), new_file(tmp_path / "no" / "x.csv"):
        pytest.fail("the block must not run")


def test_a_full_disk_is_reported_with_the_file(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(NormalcyError, match=r"out\.csv cannot be written: File too large"):
        write(tmp_path / "out.csv", b"0" * 100_000)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_to_read_another_file_is_passed_on_unchanged(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), new_file(tmp_path / "out.csv") as file:
        file.write(tmp_path.read_bytes())
    assert list(tmp_path.iterdir()) == []


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can be longer than 4096 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write(path: Path, content: bytes) -> None:
    with new_file(path) as file:
        file.write(content)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_csv_records_are_as_written_and_blank_lines_count(end: str) -> None:
    content = end.join(["\ufeffid , site", '" a, b ",x', "", '"c\nd\n",y']).encode()
    assert list(CsvRecords(io.BytesIO(content))) == [["id ", " site"], [" a, b ", "x"], [], ["c\nd\n", "y"]]


def test_a_record_of_spaces_is_blank() -> None:
    assert [is_blank(record) for record in ([], [""], [" ", "\t", "\xa0"], ["", "0"])] == [True, True, True, False]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'a,b\n1,2\n"3,4', "Row 3 is not valid CSV"),
        (b"a,b\n1,\xe9\n3,4", "not UTF-8 text (first seen in row 2)"),
        (b'a,b\n1,"2"3\n', "Row 2 is not valid CSV"),
    ],
)
def test_what_is_not_csv_is_rejected_with_its_row(content: bytes, problem: str) -> None:
    with pytest.raises(InvalidTable) as raised:
        list(CsvRecords(io.BytesIO(content)))
    assert problem in str(raised.value)


def test_numbers_are_decimal_and_nothing_else() -> None:
    assert [decimal_number(text) for text in ("41", "-1.5", ".5", "5.", "1e-3")] == [41.0, -1.5, 0.5, 5.0, 0.001]
    assert not any(decimal_number(text) for text in ("", "1_0", "nan", "inf", "0x10", "١", "1,5", " 1"))
    assert has_decimal_comma("41,5")
    assert not has_decimal_comma("41.5")


def test_a_file_is_created_once(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(lambda number: _create_and_read(path, b"%d" % number * 1000), range(64)))
    assert len(set(seen)) == 1  # all read what the first one wrote, and all of it
    assert len(seen[0]) >= 1000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def _create_and_read(path: Path, content: bytes) -> bytes:
    create_file(path, content)
    return path.read_bytes()


def test_a_replaced_file_is_private_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    for content in (b"before", b"after"):
        replace_file(path, content)
        assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
