from pathlib import Path

import pytest

from app.benchmark.paper.data import SETS, Archive, DataSet, DataUnavailable, content_digest, load, read
from tests.benchmark.paper.layouts import COLUMNS, DIGEST

TEXT = ",Sex,Height,Rings\n0,2,0.101,15\n1,0,0.35,7\n2,1,0.2,9\n"
AS_UCI_WRITES = "Sex,Height,Rings\nM,0.10099999999999999,15\nF,0.350,7\nI,0.2,9\n"
SMALL = DataSet("Small", "small.csv", COLUMNS, 3, 1, Archive("7/small.zip", "small.data"), DIGEST)


def test_the_counting_column_is_left_out_and_the_target_scaled(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text(TEXT)
    table = load(SMALL, tmp_path, tmp_path / "cache")
    assert table.X.tolist() == [[2.0, 0.101], [0.0, 0.35], [1.0, 0.2]]
    assert table.y.tolist() == [1.0, 0.0, 0.25]


def test_letters_and_rounding_of_uci_give_the_same_digest() -> None:
    assert content_digest(read(AS_UCI_WRITES, SMALL)) == DIGEST


def test_other_numbers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text(TEXT.replace("0.35", "0.36"))
    with pytest.raises(DataUnavailable, match="does not hold the numbers of the UCI set Small"):
        load(SMALL, tmp_path, tmp_path / "cache")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [(TEXT + "3,1,1,1\n", "4 rows instead of 3"), (TEXT.replace("0.35", "x"), "not a number"), ("a\n", "0 rows")],
)
def test_a_table_of_another_shape_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(DataUnavailable, match=sentence):
        read(text, SMALL)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match=r"small\.csv is not in the folder"):
        load(SMALL, tmp_path, tmp_path / "cache")


@pytest.mark.parametrize(
    "content", [TEXT.replace("0.35", "0.36").encode(), b"", b"\n\n", TEXT[:20].encode(), b"\0\xff", b"x" * 200_000]
)
def test_a_cached_file_that_fails_the_check_is_named_with_what_to_do(content: bytes, tmp_path: Path) -> None:
    cached = tmp_path / "small.csv"
    cached.write_bytes(content)
    with pytest.raises(DataUnavailable) as caught:
        load(SMALL, None, tmp_path)
    sentence, remedy = str(caught.value).split("; ")
    assert remedy == f"delete {cached} to download it again, or name a folder that holds small.csv with --data."
    assert not {".", "\n"} & set(sentence.replace("small.csv", ""))
    with pytest.raises(DataUnavailable) as caught:
        load(SMALL, tmp_path, tmp_path / "cache")
    assert str(caught.value) == f"{sentence}."  # what lies in a folder is not ours to throw away


def test_the_five_sets_are_those_of_the_paper() -> None:
    found = {one.name: (one.rows, one.anomalies, one.columns[-1]) for one in SETS}
    assert found == {
        "Abalone": (4177, 100, "Rings"),
        "Concrete": (1030, 50, "Strength"),
        "SynMachine": (557, 50, "If"),
        "Toxicity": (908, 50, "LC50"),
        "Yacht": (308, 30, "resistance"),
    }
