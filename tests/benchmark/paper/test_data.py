from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from app.benchmark.paper.data import content_digest, load, read
from app.benchmark.paper.download import DataUnavailable, fetch
from app.benchmark.paper.sets import SETS, DataSet

TEXT = ",Sex,Height,Rings\n0,2,0.101,15\n1,0,0.35,7\n2,1,0.2,9\n"
AS_UCI_WRITES = "Sex,Height,Rings\nM,0.10099999999999999,15\nF,0.350,7\nI,0.2,9\n"
DIGEST = content_digest(np.array([[2, 0.101, 15], [0, 0.35, 7], [1, 0.2, 9]]))
SMALL = DataSet("Small", "small.csv", "Rings", 3, 1, 7, DIGEST)


@contextmanager
def served(text: str) -> Iterator[tuple[str, list[str]]]:
    """A server that answers every path with the text: its address, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            found = self.path.startswith("/static/public/7/")
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(text.encode() if found else b"")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/static/public/{{uci_id}}/data.csv", asked
        server.shutdown()


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


def test_a_set_is_downloaded_once(tmp_path: Path) -> None:
    with served(AS_UCI_WRITES) as (address, asked):
        first = fetch(SMALL, tmp_path / "cache", address)
        assert fetch(SMALL, tmp_path / "cache", address) == first
    assert asked == ["/static/public/7/data.csv"]
    assert first.read_text() == AS_UCI_WRITES
    assert load(SMALL, None, tmp_path / "cache").digest == DIGEST


def test_a_page_that_does_not_exist_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    elsewhere = DataSet("Gone", "gone.csv", "y", 1, 1, 8, "")
    with served(TEXT) as (address, _), pytest.raises(DataUnavailable, match="Gone could not be downloaded") as caught:
        fetch(elsewhere, tmp_path / "cache", address)
    assert "--data" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "cache").exists()


def test_without_network_the_sentence_says_what_to_do(tmp_path: Path) -> None:
    with served(TEXT) as (address, _):
        pass  # the port is free again
    with pytest.raises(DataUnavailable, match=r"small\.csv with --data"):
        fetch(SMALL, tmp_path, address)


def test_the_five_sets_are_those_of_the_paper() -> None:
    found = {one.name: (one.rows, one.anomalies, one.target) for one in SETS}
    assert found == {
        "Abalone": (4177, 100, "Rings"),
        "Concrete": (1030, 50, "Strength"),
        "SynMachine": (557, 50, "If"),
        "Toxicity": (908, 50, "LC50"),
        "Yacht": (308, 30, "resistance"),
    }
