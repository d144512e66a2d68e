"""The examples of a reverse proxy, run by the real programs in front of a real service."""

import asyncio
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from app.web.server import IDLE_SECONDS, READING_SECONDS
from tests.deploy.proxies import DEPLOY, NAME, PROXIES, Proxy, ask, free_port, proxied
from tests.web.serving import READING, SCORE, Running, bearer, create_key, serving
from tests.web.test_batch import BATCH, ITEM

on_sqlite = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
STREAM_SECONDS = 60  # far longer than it takes
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
REQUEST_ID = re.compile(rb"\r\nx-request-id: ([\w-]+)\r\n", re.IGNORECASE)


@pytest.fixture
def keyed(settings: Settings, models_dir: Path) -> Iterator[tuple[Running, str]]:
    key = create_key(settings, ["score", "model:read"])
    with serving(settings, models_dir) as running:
        yield running, key


@on_sqlite
@pytest.mark.parametrize("which", PROXIES)
def test_a_score_comes_through_tls_and_metrics_do_not(which: str, keyed: tuple[Running, str], tmp_path: Path) -> None:
    running, key = keyed
    with proxied(which, tmp_path, running.url) as proxy, proxy.client() as client:
        answer = ask(client, "POST", SCORE, json=READING, headers=bearer(key))
        assert answer.status_code == 200
        assert answer.json()["score"] == running.score(headers=bearer(key)).json()["score"]
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert ask(client, "POST", SCORE, json=READING).status_code == 401
        assert ask(client, "GET", "/metrics", headers=bearer(key)).status_code == 404
        blanks = {"content": b" " * 20_000, "headers": {**bearer(key), "Content-Type": "application/json"}}
        too_large = ask(client, "POST", SCORE, **blanks)
        assert (too_large.status_code, too_large.headers["content-type"]) == (413, "application/problem+json")


@on_sqlite
@pytest.mark.parametrize("which", PROXIES)
def test_without_a_key_the_proxy_does_not_open_the_service(
    which: str, settings: Settings, models_dir: Path, tmp_path: Path
) -> None:
    """To the service every caller is then this machine; what the caller asked for tells that it is not."""
    with (
        serving(settings, models_dir) as running,
        proxied(which, tmp_path, running.url) as proxy,
        proxy.client() as client,
    ):
        assert running.score().status_code == 200
        assert ask(client, "POST", SCORE, json=READING).status_code == 400


async def stream(proxy: Proxy, key: str, lines: Sequence[bytes], unanswered: int) -> list[dict[str, Any]]:
    """The results of a batch of lines over one connection; so many lines may be sent without having a result."""
    port = int(proxy.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=proxy.trusted, server_hostname=NAME)
    received, has_more = b"", asyncio.Event()

    async def send() -> None:
        headers = {"Host": NAME, "Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked", **bearer(key)}
        head = [f"POST {BATCH} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*head, "", ""]).encode())
        for number, line in enumerate(lines):
            while number - received.count(b"\n") >= unanswered:
                has_more.clear()
                await has_more.wait()
            writer.write(b"%x\r\n%b\r\n" % (len(line), line))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    try:
        async with asyncio.timeout(STREAM_SECONDS), asyncio.TaskGroup() as tasks:
            tasks.create_task(send())
            await reader.readuntil(b"\r\n\r\n")
            while size := int(await reader.readline(), 16):
                received += (await reader.readexactly(size + 2))[:-2]
                has_more.set()
    finally:
        writer.close()
    return [json.loads(line) for line in received.splitlines()]


@on_sqlite
@pytest.mark.parametrize(("which", "unanswered"), [("nginx", 64 * 1024), ("caddy", 64 * 1024), ("caddy", 1 << 30)])
def test_a_stream_of_any_length_passes_while_its_results_come_back(
    which: str, unanswered: int, keyed: tuple[Running, str], tmp_path: Path
) -> None:
    """Longer than the 8 MiB that other bodies may have. Every item must have its result: a proxy could lose some."""
    running, key = keyed
    lines = [json.dumps(ITEM | {"id": str(k)}).encode() + b" " * 4000 + b"\n" for k in range(2200)]
    assert sum(map(len, lines)) > 8 * 1024**2
    with proxied(which, tmp_path, running.url) as proxy:
        *results, end = asyncio.run(stream(proxy, key, lines, unanswered // len(lines[0])))
    assert [result["id"] for result in results] == [str(k) for k in range(len(lines))]
    assert (end["summary"]["succeeded"], end["summary"]["failed"]) == (len(lines), 0)


def test_pauses_that_the_service_allows_in_a_stream_do_not_end_it() -> None:
    """Read from the files: the pauses themselves would take a minute."""
    nginx = (DEPLOY / "nginx.conf").read_text()
    [batches] = re.findall(r"location = /v1/batch/score \{(.*?)\}", nginx, re.DOTALL)
    seconds = {name: int(value) for name, value in re.findall(r"(\w+) (\d+)s;", batches)}
    assert seconds.keys() == {"client_body_timeout", "proxy_read_timeout", "proxy_send_timeout", "send_timeout"}
    assert seconds.pop("client_body_timeout") > IDLE_SECONDS
    assert min(seconds.values()) > READING_SECONDS
    assert "read_body" not in (DEPLOY / "Caddyfile").read_text()  # it would hold for every address


@contextmanager
def upstream(received: list[str], *, answers: bool) -> Iterator[str]:
    """A replica as the proxy sees it. It is ready; without `answers` it ends the connection after it read a POST."""

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                connection = listening.accept()[0]
            except OSError:
                return
            with connection:
                request = connection.recv(1 << 16)
                if request.startswith(b"POST"):
                    found = REQUEST_ID.search(request)
                    received.append(found[1].decode() if found else "")
                if answers or request.startswith(b"GET"):
                    connection.sendall(OK)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("which", PROXIES)
def test_a_post_that_was_sent_is_not_sent_to_another_replica(which: str, tmp_path: Path) -> None:
    """The first replica may have answered and recorded it."""
    sent, received = [f"request-{number}" for number in range(12)], list[str]()
    with (
        upstream(received, answers=True) as good,
        upstream(received, answers=False) as bad,
        proxied(which, tmp_path, bad, good) as proxy,
        proxy.client() as client,
    ):
        answers = [ask(client, "POST", SCORE, json=READING, headers={"X-Request-ID": one}) for one in sent]
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses.keys() == {200, 502}  # both replicas were tried, and the caller learns of the failure
    assert set(Counter(received).values()) == {1}
    assert set(received) == set(sent)


@pytest.mark.parametrize("which", PROXIES)
def test_a_post_goes_to_another_replica_if_a_connection_is_refused(which: str, tmp_path: Path) -> None:
    received: list[str] = []
    with (
        upstream(received, answers=True) as good,
        proxied(which, tmp_path, f"127.0.0.1:{free_port()}", good) as proxy,
        proxy.client() as client,
    ):
        answers = [ask(client, "POST", SCORE, json=READING, headers={"X-Request-ID": f"{n}"}) for n in range(12)]
    assert {answer.status_code for answer in answers} == {200}
    assert len(received) == 12
