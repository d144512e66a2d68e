"""Clients that ask without pause over connections that they keep, and write down what became of every request."""

import asyncio
import contextlib
import json
import random
import re
import time
from dataclasses import dataclass
from typing import Any

from tests.campaigns.faults_service import ServiceProcess

CLIENTS = 24
PATIENCE_SECONDS = 30.0  # a request without an answer by then is a hang
PAUSE_SECONDS = 0.05  # after a refusal, or while nobody listens: short, to see the return when it comes
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
CLOSE = re.compile(rb"\r\nconnection: close\r\n", re.IGNORECASE)
NO_ANSWER = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    request_id: str
    asked: dict[str, Any]
    sent_at: float  # monotonic
    seconds: float
    status: int  # NO_ANSWER: the connection ended first
    body: bytes


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.is_open = True

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Raises OSError or EOFError when the connection ends before the answer does."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            self._writer.write(request)
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = LENGTH.search(head)
            body = await self._reader.readexactly(int(length[1]) if length else 0)
        if CLOSE.search(head):
            self.close()
        return int(head[9:12]), body

    def close(self) -> None:
        self.is_open = False
        self._writer.close()


class Load:
    """`async with Load(...)`: clients ask while the block runs; at its end each finishes what it has begun."""

    def __init__(self, service: ServiceProcess, label: str, clients: int = CLIENTS) -> None:
        """Every request id begins with `label`, and what each client asks is drawn from it."""
        self._service, self._label, self._clients = service, label, clients
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        self._awaited: tuple[float, asyncio.Future[float]] | None = None
        self.outcomes: list[Outcome] = []

    async def __aenter__(self) -> "Load":
        self._tasks = [asyncio.create_task(self._ask_on(number)) for number in range(self._clients)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def served_after(self, moment: float) -> float:
        """Seconds from `moment` to the first score that was asked for later."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._awaited = (moment, future)
        async with asyncio.timeout(2 * PATIENCE_SECONDS):
            return await future

    async def _ask_on(self, number: int) -> None:
        rng, asked, connection = random.Random(f"{self._label}-{number}"), 0, None  # noqa: S311 - no secret
        while not self._stopping:
            if connection is None or not connection.is_open:
                connection = await self._connect()
            if connection is None:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            asked += 1
            outcome = await self._ask(connection, f"{self._label}-{number}-{asked}", a_reading(rng))
            self._note(outcome)
            if outcome.status != 200:
                await asyncio.sleep(PAUSE_SECONDS)
        if connection is not None:
            connection.close()

    async def _connect(self) -> Connection | None:
        if self._service.port is None:
            return None
        with contextlib.suppress(OSError):
            return Connection(*await asyncio.open_connection("127.0.0.1", self._service.port))
        return None

    async def _ask(self, connection: Connection, request_id: str, reading: dict[str, Any]) -> Outcome:
        request = http_request(self._service.port or 0, request_id, reading)
        sent_at = time.monotonic()
        try:
            status, body = await connection.exchange(request)
        except (OSError, EOFError):  # TimeoutError is an OSError, IncompleteReadError an EOFError
            connection.close()
            status, body = NO_ANSWER, b""
        return Outcome(request_id, reading, sent_at, time.monotonic() - sent_at, status, body)

    def _note(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if self._awaited is not None and outcome.status == 200:
            moment, future = self._awaited
            if outcome.sent_at >= moment and not future.done():
                future.set_result(outcome.sent_at + outcome.seconds - moment)


def a_reading(rng: random.Random) -> dict[str, Any]:
    """Each its own, so that an answer recorded under another request's id is noticed."""
    return {
        "age_years": round(rng.uniform(20, 80), 3),
        "sex": rng.choice(("male", "female")),
        "height_cm": round(rng.uniform(150, 195), 2),
        "weight_kg": round(rng.uniform(55, 95), 2),
        "diameter_mm": round(rng.uniform(25, 48), 2),
    }


def http_request(port: int, request_id: str, reading: dict[str, Any]) -> bytes:
    body = json.dumps(reading).encode()
    head = (
        f"POST /v1/sites/SoV/score HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"X-Request-ID: {request_id}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
