"""The sets over HTTP, from a server on this machine that answers as UCI does, or does not."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from app.benchmark.paper import data
from app.benchmark.paper.data import DataUnavailable, fetch, load
from tests.benchmark.paper.layouts import DIGEST, MEMBERS, archive_of, small, zipped

Answer = Callable[[BaseHTTPRequestHandler], None]
YACHT = small("Yacht")
PLAIN = "Sex,Height,Rings\n2,0.101,15\n0,0.35,7\n1,0.2,9\n"


@contextmanager
def served(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    """A server that answers every path alike: its address, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/static/public/", asked
        server.shutdown()


def page(content: bytes, status: int = 200, length: int | None = None) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        if length is not None:
            handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def gibberish(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"220 this is another protocol\r\n")


def silence(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1.0)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_set_is_downloaded_once_and_saved_as_a_plain_table(name: str, tmp_path: Path) -> None:
    wanted = small(name)
    with served(page(archive_of(name))) as (address, asked):
        first = fetch(wanted, tmp_path / "cache", address)
        assert fetch(wanted, tmp_path / "cache", address) == first
    assert asked == [f"/static/public/{wanted.archive.path}"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [wanted.file]
    assert first.read_text().splitlines()[0] == "Sex,Height,Rings"
    assert load(wanted, None, tmp_path / "cache").digest == DIGEST
    assert load(wanted, tmp_path / "cache", tmp_path / "none").digest == DIGEST  # as good as any folder of data


def test_the_archives_are_those_of_uci() -> None:
    assert data.ADDRESS + YACHT.archive.path == (
        "https://archive.ics.uci.edu/static/public/243/yacht+hydrodynamics.zip"
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(page(b"", 404), "Not Found", id="no such page"),
        pytest.param(page(b"<html>Not here</html>"), "not a whole ZIP archive", id="a page in its place"),
        pytest.param(page(archive_of("Yacht")[:-30], length=10_000), "not a whole ZIP archive", id="cut short"),
        pytest.param(page(zipped({"a.txt": b""})), r"holds no file yacht_hydrodynamics\.data", id="another archive"),
        pytest.param(page(bytes(100_001)), "larger than 100000 bytes", id="too large"),
        pytest.param(gibberish, "the answer is not HTTP", id="no HTTP"),
        pytest.param(silence, "timed out", id="no answer in time"),
    ],
)
def test_a_failure_is_one_sentence_that_says_what_to_do_and_leaves_nothing(
    answer: Answer, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(data, "MAX_BYTES", 100_000)
    with served(answer) as (address, _), pytest.raises(DataUnavailable, match=reason) as caught:
        fetch(YACHT, tmp_path / "cache", address)
    sentence = str(caught.value)
    assert sentence.startswith("Yacht could not be downloaded from UCI (")
    assert sentence.endswith("); name a folder that holds yachtHydrodynamics.csv with --data.")
    assert "\n" not in sentence
    assert not (tmp_path / "cache").exists()


def test_without_network_the_sentence_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # no process listens there
        with pytest.raises(DataUnavailable, match=r"refused\); name a folder that holds yacht.*\.csv with --data\."):
            fetch(YACHT, tmp_path, f"http://127.0.0.1:{unused.getsockname()[1]}/")


def test_a_table_is_saved_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: Path, target: Path) -> None:
        assert source.read_text() == PLAIN
        raise OSError("the disk is gone")

    with served(page(archive_of("Yacht"))) as (address, _):
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", broken)
            with pytest.raises(OSError, match="the disk is gone"):
                fetch(YACHT, tmp_path, address)
        assert not (tmp_path / YACHT.file).exists()
        assert fetch(YACHT, tmp_path, address).read_text() == PLAIN
