"""A small HTTP load balancer that honours readiness: it checks the replicas and sends requests to those that are ready.

A request goes to one replica and is never repeated. A connection that cannot be opened is tried at the next replica,
because nothing was sent.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Sequence

from tests.campaigns.faults.load import CLOSE
from tests.campaigns.messages import CONTENT_LENGTH
from tests.campaigns.service_process import ServiceProcess

CHECK_SECONDS = 0.5
CHECK_TIMEOUT_SECONDS = 2.0
CHECK = b"GET /health/ready HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n"
BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Balancer:
    """`async with Balancer(replicas)`; its `port` takes the requests."""

    def __init__(self, replicas: Sequence[ServiceProcess]) -> None:
        self._replicas = replicas
        self._ready: list[int] = []  # ports
        self._turn = itertools.count()
        self.port: int | None = None

    async def __aenter__(self) -> "Balancer":
        await self._check_once()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._checking = asyncio.create_task(self._check())
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._checking.cancel()
        self._server.close()

    @property
    def ready(self) -> Sequence[int]:
        return self._ready

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self._check_once()

    async def _check_once(self) -> None:
        ports = [replica.port for replica in self._replicas if replica.port is not None]
        found = await asyncio.gather(*map(_is_ready, ports))
        self._ready = [port for port, is_ready in zip(ports, found, strict=True) if is_ready]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstreams: dict[int, Streams] = {}
        with contextlib.suppress(OSError, EOFError):  # the client left
            while True:
                request = await _message(reader)
                answer = await self._forward(request, upstreams)
                writer.write(answer)
                await writer.drain()
        for _, upstream in upstreams.values():
            upstream.close()
        writer.close()

    async def _forward(self, request: bytes, upstreams: dict[int, Streams]) -> bytes:
        for _ in range(len(self._replicas)):
            port = self._next()
            try:
                if port not in upstreams:
                    upstreams[port] = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            reader, writer = upstreams[port]
            try:
                writer.write(request.replace(b":%d" % (self.port or 0), b":%d" % port, 1))  # Host: its own address
                answer = await _message(reader)
            except (OSError, EOFError):
                upstreams.pop(port)[1].close()
                return BAD_GATEWAY
            if CLOSE.search(answer.partition(b"\r\n\r\n")[0] + b"\r\n"):
                upstreams.pop(port)[1].close()
                answer = CLOSE.sub(b"\r\n", answer, count=1)  # of that connection, not of the client's
            return answer
        return BAD_GATEWAY

    def _next(self) -> int:
        return self._ready[next(self._turn) % len(self._ready)] if self._ready else 0


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = CONTENT_LENGTH.search(head)
    return head + await reader.readexactly(int(length[1]) if length else 0)


async def _is_ready(port: int) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(CHECK % port)
            status = await reader.readline()
            writer.close()
    except OSError:
        return False
    return status.startswith(b"HTTP/1.1 200")
