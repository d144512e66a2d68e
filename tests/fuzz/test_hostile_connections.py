"""Clients that send too much, too little, or the next request too early; others are served meanwhile."""

import asyncio
import json
import signal
import socket
from contextlib import ExitStack, closing

import psutil  # type: ignore[import-untyped]
import pytest

from app.web.middleware import MAX_HEADER_BYTES, MAX_HEADERS
from tests.campaigns.service_process import MODELS, ServiceProcess
from tests.fuzz.target import UNLIMITED, Target
from tests.web.serving import READING, SCORE, Running, serving

MEGABYTE = 1_000_000
BODY = json.dumps(READING).encode()
SPARED = 3  # headers that every request here has: Host, Authorization, Connection


def head(running: Running, key: str, *lines: bytes, method: str = "GET", path: str = "/v1/sites") -> bytes:
    host = running.url.removeprefix("http://")
    first = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n".encode()
    return first + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def connect(running: Running) -> socket.socket:
    host, port = running.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def answers(running: Running, sent: bytes) -> list[bytes]:
    """All that came until the service closed."""
    with closing(connect(running)) as connection:
        connection.sendall(sent)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    return received.split(b"HTTP/1.1 ")[1:]


def post(running: Running, key: str, body: bytes, *lines: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return head(running, key, b"Content-Type: application/json", length, *lines, method="POST", path=SCORE) + body


@pytest.mark.parametrize(("more", "status"), [(0, b"200"), (1, b"431"), (100, b"431")])
def test_the_number_of_headers_is_bounded(target: Target, more: int, status: bytes) -> None:
    lines = [b"X-%d: a" % place for place in range(MAX_HEADERS - SPARED + more)]
    with serving(target.settings, MODELS) as running:
        (answer,) = answers(running, head(running, target.key, *lines, b"Connection: close"))
    assert answer.startswith(status)
    assert (b"application/problem+json" in answer) == (status == b"431")


@pytest.mark.parametrize(("size", "status"), [(MAX_HEADER_BYTES - 1000, b"200"), (MAX_HEADER_BYTES, b"431")])
def test_the_size_of_headers_is_bounded(target: Target, size: int, status: bytes) -> None:
    with serving(target.settings, MODELS) as running:
        (answer,) = answers(running, head(running, target.key, b"X: " + b"a" * size, b"Connection: close"))
    assert answer.startswith(status)


def test_what_follows_a_body_that_is_too_large_is_answered_in_order(target: Target) -> None:
    with serving(target.settings, MODELS) as running:
        large = post(running, target.key, b" " * 40_000)
        last = post(running, target.key, BODY, b"Connection: close")
        received = answers(running, post(running, target.key, BODY) + large + head(running, target.key) + large + last)
    assert [answer[:3] for answer in received] == [b"200", b"413", b"200", b"413", b"200"]


def test_half_a_request_leaves_no_record_and_hinders_nobody(target: Target) -> None:
    with serving(target.settings, MODELS) as running, ExitStack() as held:
        for cut in range(1, 201):
            connection = held.enter_context(closing(connect(running)))
            whole = post(running, target.key, BODY)
            connection.sendall(whole[: len(whole) * cut // 201])
        own = {"Authorization": f"Bearer {target.key}", "X-Request-ID": "honest"}
        given = [running.score(headers=own).status_code for _ in range(20)]
        held.close()
        given += [running.score(headers=own).status_code for _ in range(20)]
        recorded = [record.request_id for record in running.records("score")]
    assert given == [200] * 40
    assert recorded == ["honest"] * 40


def test_endless_headers_and_bodies_take_no_memory(target: Target) -> None:
    async def work(service: ServiceProcess) -> int:
        await _flood(service, target.key, 1)  # what is allocated once
        before = psutil.Process(service.process.pid).memory_info().rss
        await _flood(service, target.key, 20)
        return int(psutil.Process(service.process.pid).memory_info().rss - before)

    async def run() -> int:
        service = ServiceProcess({"NORMALCY_DATA_DIR": str(target.folder), **UNLIMITED})
        await service.start()
        try:
            return await work(service)
        finally:
            await service.end(signal.SIGINT)

    assert asyncio.run(run()) < 10 * MEGABYTE


async def _flood(service: ServiceProcess, key: str, megabytes: int) -> None:
    """One endless header, one endless chunked body and one that announces its length, one after the other."""
    post = f"POST {SCORE} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    chunk = b"%x\r\n%s\r\n" % (MEGABYTE, b" " * MEGABYTE)
    for first, piece in (
        (b"GET / HTTP/1.1\r\nX: ", b"a" * MEGABYTE),
        (f"{post}Transfer-Encoding: chunked\r\n\r\n".encode(), chunk),
        (f"{post}Content-Length: {megabytes * MEGABYTE}\r\n\r\n".encode(), b" " * MEGABYTE),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        try:
            writer.write(first)
            for _ in range(megabytes):
                writer.write(piece)
                await writer.drain()
            assert await reader.read(12) in (b"HTTP/1.1 413", b"HTTP/1.1 431")
        except ConnectionError:  # it sent on long after it was refused
            continue
        finally:
            writer.close()
