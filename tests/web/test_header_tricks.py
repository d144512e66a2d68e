"""Headers that come late, twice, or in the target: each request has one meaning."""

import json
import socket
from contextlib import closing
from pathlib import Path

import pytest

from app.settings import Settings
from tests.web.serving import READING, SCORE, Running, create_key, serving
from tests.web.test_pipelining import answers
from tests.web.test_protocol import connect, everything

pytestmark = pytest.mark.slow

BODY = json.dumps(READING).encode()


def ask(running: Running, target: str, *headers: str, body: bytes = b"", host: str | None = None) -> tuple[int, bytes]:
    """Status and body of the answer to exactly these headers."""
    own = running.url.removeprefix("http://") if host is None else host
    lines = [target + " HTTP/1.1", f"Host: {own}", "Connection: close", *headers]
    with closing(connect(running)) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        [answer] = answers(everything(connection))
    return answer


def chunked(*trailers: str) -> bytes:
    return b"%x\r\n%b\r\n0\r\n" % (len(BODY), BODY) + "".join(line + "\r\n" for line in trailers).encode() + b"\r\n"


def send_until_closed(connection: socket.socket, first: bytes, then: bytes) -> None:
    connection.sendall(first)
    while True:
        connection.sendall(then)


CHUNKED = ("Transfer-Encoding: chunked", "Content-Type: application/json")


class TestTrailers:
    def test_they_replace_no_header(self, shared: Running) -> None:
        late = chunked("Host: evil.example", "Content-Type: text/plain", "X-Request-ID: late", "Content-Encoding: gzip")
        status, body = ask(shared, f"POST {SCORE}", *CHUNKED, "X-Request-ID: early", body=late)
        assert (status, json.loads(body)["request_id"]) == (200, "early")

    @pytest.mark.req("REQ-096")
    def test_they_are_no_credential(self, settings: Settings, models_dir: Path) -> None:
        key = create_key(settings, ["score"])
        with serving(settings, models_dir) as running:
            late = chunked(f"Authorization: Bearer {key}")
            assert ask(running, f"POST {SCORE}", *CHUNKED, body=late)[0] == 401
            early = f"Authorization: Bearer {key}"
            late = chunked("Authorization: Bearer none")
            assert ask(running, f"POST {SCORE}", *CHUNKED, early, body=late)[0] == 200

    def test_they_do_not_make_up_for_a_header_that_is_missing(self, shared: Running) -> None:
        late = chunked("Content-Type: application/json")
        assert ask(shared, f"POST {SCORE}", "Transfer-Encoding: chunked", body=late)[0] == 415

    @pytest.mark.parametrize("trailer", ["X: " + "a" * 20_000_000, "X: a\r\n" * 3_000_000], ids=["one", "many"])
    def test_endless_ones_are_refused_while_they_come(self, shared: Running, trailer: str) -> None:
        refused = shared.runtime.metrics.requests["none", "none", "431"]
        before = refused._value.get()
        head = f"POST {SCORE} HTTP/1.1\r\nHost: {shared.url.removeprefix('http://')}\r\n" + "\r\n".join(CHUNKED)
        with closing(connect(shared)) as connection, pytest.raises((BrokenPipeError, ConnectionResetError)):
            send_until_closed(connection, head.encode() + b"\r\n\r\n" + chunked()[:-2], trailer.encode())
        assert refused._value.get() == before + 1
        assert shared.score().status_code == 200


TWICE = [
    ("Host: {own}",),  # beside the one that every request here has
    ("Content-Type: application/json", "Content-Type: application/json"),
    ("content-type: application/json", "CONTENT-TYPE: text/plain"),
    (f"Content-Length: {len(BODY)}", f"Content-Length: {len(BODY)}"),
    ("Authorization: Bearer a", "authorization: Bearer b"),
    ("Idempotency-Key: a", "Idempotency-Key: a"),
]


class TestRepeatedHeaders:
    @pytest.mark.parametrize("pair", TWICE, ids=lambda pair: pair[0].partition(":")[0])
    @pytest.mark.req("REQ-096")
    def test_what_decides_must_be_there_once(self, shared: Running, pair: tuple[str, ...]) -> None:
        sent = [line.format(own=shared.url.removeprefix("http://")) for line in pair]
        names = {line.partition(":")[0].lower() for line in sent}
        usual = [f"Content-Length: {len(BODY)}", "Content-Type: application/json"]
        rest = [line for line in usual if line.partition(":")[0].lower() not in names]
        status, body = ask(shared, f"POST {SCORE}", *sent, *rest, body=BODY)
        assert (status, json.loads(body)["type"]) == (400, "/guide#problem-bad-request")

    def test_others_may_be_repeated(self, shared: Running) -> None:
        headers = ["Accept: text/plain", "Accept: application/json", "X-Ward: 7", "X-Ward: 8"]
        length = f"Content-Length: {len(BODY)}"
        assert ask(shared, f"POST {SCORE}", *headers, length, "Content-Type: application/json", body=BODY)[0] == 200

    def test_the_refusal_is_on_record(self, settings: Settings, models_dir: Path) -> None:
        with serving(settings, models_dir) as running:
            assert ask(running, "GET /v1/sites", "Authorization: Bearer a", "Authorization: Bearer b")[0] == 400
        [record] = running.records("refusal")
        assert (record.route, record.status, record.principal) == ("/v1/sites", 400, "nobody")


class TestTargetsWithAHost:
    @pytest.mark.parametrize(
        "authority", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "a@127.0.0.1:{port}", ""]
    )
    @pytest.mark.parametrize("path", ["/v1/sites", "/", "/health/live?x=y"])
    def test_a_strange_one_is_refused_without_a_key(self, shared: Running, authority: str, path: str) -> None:
        named = authority.format(port=shared.url.rpartition(":")[2])
        assert ask(shared, f"GET http://{named}{path}")[0] == 400

    def test_this_machine_is_accepted_if_both_say_so(self, shared: Running) -> None:
        port = shared.url.rpartition(":")[2]
        assert ask(shared, f"GET {shared.url}/v1/sites")[0] == 200
        assert ask(shared, f"GET http://LOCALHOST:{port}/v1/sites")[0] == 200
        assert ask(shared, f"GET {shared.url}/v1/sites", host="evil.example")[0] == 400

    def test_with_keys_any_name_is_accepted_as_in_a_host_header(self, settings: Settings, models_dir: Path) -> None:
        key = create_key(settings, ["model:read"])
        with serving(settings, models_dir) as running:
            credential = f"Authorization: Bearer {key}"
            assert ask(running, "GET http://scores.example/v1/sites", credential)[0] == 200
            assert ask(running, "GET http://scores.example/v1/sites")[0] == 401
