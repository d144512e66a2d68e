"""A connection that sends bytes as they are and reads whatever comes."""

import asyncio
from dataclasses import dataclass

from tests.fuzz.http_texts import Attempt

PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]  # by their lower-case names
    body: bytes
    raw: bytes


class Wire:
    """Keeps its connection for as long as the service does."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, attempt: Attempt) -> Answer | None:
        """None: the connection ended, or nothing came, before an answer was complete."""
        if attempt.alone:
            self.close()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = await self._exchange(attempt)
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError):  # TimeoutError is an OSError
            self.close()
            return None
        if attempt.alone or "close" in answer.headers.get("connection", ""):
            self.close()
        return answer

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None

    async def _exchange(self, attempt: Attempt) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(attempt.raw)
        answer = await _read(reader, attempt.method)
        while answer.status < 200:  # 100 Continue
            answer = await _read(reader, attempt.method)
        return answer


async def _read(reader: asyncio.StreamReader, method: bytes) -> Answer:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
    status = int(first.split(" ", 2)[1])
    without = method == b"HEAD" or status < 200 or status in (204, 304)
    if headers.get("transfer-encoding") == "chunked" and not without:
        body = await _chunks(reader)
    else:
        body = await reader.readexactly(0 if without else int(headers.get("content-length", "0")))
    return Answer(status, headers, body, head + body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return body
