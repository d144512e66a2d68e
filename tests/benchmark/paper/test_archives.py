"""From the bytes of an archive to a plain table; what comes over the network is in `test_download`."""

import re
import subprocess
import sys
import tracemalloc
import zipfile

import pytest

from app.benchmark.paper.data import MAX_MEMBER_BYTES, ArchiveRefused, content_digest, plain_table, read
from tests.benchmark.paper.layouts import DIGEST, EXCEL, MEMBERS, archive_of, small, zipped

YACHT = small("Yacht")
TABLE = MEMBERS["Yacht"]


@pytest.mark.parametrize("name", MEMBERS)
def test_every_layout_gives_the_same_numbers_under_the_names_of_the_columns(name: str) -> None:
    text = plain_table(archive_of(name), small(name))
    assert text.splitlines()[0] == "Sex,Height,Rings"
    assert ";" not in text
    assert content_digest(read(text, small(name))) == DIGEST


def test_letters_are_left_to_the_reader() -> None:
    assert plain_table(archive_of("Abalone"), small("Abalone")).splitlines()[1] == "M,0.101,15"


@pytest.mark.parametrize("name", ["yacht_hydrodynamics.data", "a/b/YACHT_Hydrodynamics.DATA"])
def test_the_file_is_found_in_any_folder_and_in_capitals(name: str) -> None:
    beside = {"__MACOSX/._yacht_hydrodynamics.data": b"x", "old_yacht_hydrodynamics.data": b"x", "a/": b""}
    assert plain_table(zipped({**beside, name: TABLE}), YACHT) == plain_table(archive_of("Yacht"), YACHT)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ArchiveRefused, match=r"the archive holds no file yacht_hydrodynamics\.data"):
        plain_table(zipped({"yacht.csv": TABLE, "yacht_hydrodynamics.data/": b""}), YACHT)


def test_a_damaged_archive_is_refused_wherever_the_damage_is() -> None:
    whole = zipped({"Fußnote.txt": b"x", YACHT.archive.member: TABLE})
    table = plain_table(whole, YACHT)
    for place in range(len(whole)):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]):
            try:
                assert plain_table(damaged, YACHT) == table  # a date, or a byte of the other file
            except ArchiveRefused as refused:
                assert re.match("what came|the archive holds no|.* is packed", str(refused))  # noqa: PT017


@pytest.mark.parametrize("text", [b"", b"<html>Not here</html>"])
def test_a_page_is_no_archive(text: bytes) -> None:
    with pytest.raises(ArchiveRefused, match="not a whole ZIP archive"):
        plain_table(text, YACHT)


def test_a_file_that_unpacks_to_too_much_is_refused() -> None:
    with pytest.raises(ArchiveRefused, match=f"larger than {MAX_MEMBER_BYTES} bytes"):
        plain_table(zipped({YACHT.archive.member: bytes(MAX_MEMBER_BYTES + 1)}), YACHT)


def test_an_archive_that_lies_about_a_size_is_not_unpacked_whole() -> None:
    true = 30 * MAX_MEMBER_BYTES
    bomb = zipped({YACHT.archive.member: bytes(true)})
    lying = bomb.replace(true.to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert lying != bomb
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveRefused):
            plain_table(lying, YACHT)
        assert tracemalloc.get_traced_memory()[1] < 5 * MAX_MEMBER_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packing_that_cannot_be_unpacked_in_steps_is_refused(method: int) -> None:
    with pytest.raises(ArchiveRefused, match="packed in a way that UCI does not use"):
        plain_table(zipped({YACHT.archive.member: TABLE}, method), YACHT)


def test_a_row_of_another_width_is_refused() -> None:
    with pytest.raises(ArchiveRefused, match="row of 2 cells instead of 3"):
        plain_table(zipped({YACHT.archive.member: TABLE + b"1 2\n"}), YACHT)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ArchiveRefused, match=r"yacht_hydrodynamics\.data is not text"):
        plain_table(zipped({YACHT.archive.member: b"\xff\xfe1 2 3"}), YACHT)


@pytest.mark.parametrize("content", [b"", b"1,2,3", EXCEL[:-2000], EXCEL.replace(b"\x09\x08", b"\x09\x09")])
def test_a_damaged_excel_file_is_refused(content: bytes) -> None:
    concrete = small("Concrete")
    with pytest.raises(ArchiveRefused, match=r"Concrete_Data\.xls is not a whole Excel file"):
        plain_table(zipped({concrete.archive.member: content}), concrete)


def said_by(code: str) -> str:
    """By a process of its own: what a library does on its import it does once."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout  # noqa: S603


def test_the_excel_library_is_loaded_for_excel_alone() -> None:
    assert said_by("import sys, app.benchmark.paper.data; print('xlrd' in sys.modules)") == "False\n"


def test_the_excel_library_does_not_speak_on_the_standard_output() -> None:
    odd = "EXCEL + b'x'"  # a size that it warns of
    read_it = f"plain_table(zipped({{'Concrete_Data.xls': {odd}}}), small('Concrete'))"
    imports = "from tests.benchmark.paper.test_archives import EXCEL, plain_table, small, zipped"
    assert said_by(f"{imports}; print(len({read_it}.splitlines()))") == "4\n"
