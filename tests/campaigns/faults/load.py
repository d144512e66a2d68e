"""Clients that send requests without pause over keep-alive connections and log the outcome of every request."""

import asyncio
import contextlib
import random
import re
import time
from dataclasses import dataclass
from typing import Any, Protocol

from tests.campaigns.messages import CONTENT_LENGTH, random_measurement, score_request

CLIENTS = 24
TIMEOUT_SECONDS = 30.0  # a request without an answer by then is a hang
PAUSE_SECONDS = 0.05  # after a refusal, or while no process listens: short, to see the return when it comes
CLOSE = re.compile(rb"\r\nconnection: close\r\n", re.IGNORECASE)
NO_ANSWER, HANGS = 0, -1


class Listening(Protocol):
    """A service, or a balancer in front of several."""

    @property
    def port(self) -> int | None:
        """None: no process listens."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    request_id: str
    body_sent: dict[str, Any]
    sent_at: float  # monotonic
    seconds: float
    status: int  # NO_ANSWER: the connection ended first; HANGS: nothing came in TIMEOUT_SECONDS
    answer: bytes


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.is_open = True

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Raises OSError or EOFError when the connection ends before the answer does."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            self._writer.write(request)
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = CONTENT_LENGTH.search(head)
            body = await self._reader.readexactly(int(length[1]) if length else 0)
        if CLOSE.search(head):
            self.close()
        return int(head[9:12]), body

    def close(self) -> None:
        self.is_open = False
        self._writer.close()


class Load:
    """`async with Load(...)`: clients send requests while the block runs; at its end each waits for its last answer."""

    def __init__(self, service: Listening, label: str, clients: int = CLIENTS) -> None:
        """Every request id begins with `label`, which is also the seed of the measurements."""
        self._service, self._label, self._clients = service, label, clients
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        self._awaited: tuple[float, asyncio.Future[float]] | None = None
        self.outcomes: list[Outcome] = []

    @property
    def served(self) -> int:
        """How many scores so far."""
        return sum(outcome.status == 200 for outcome in self.outcomes)

    async def __aenter__(self) -> "Load":
        self._tasks = [asyncio.create_task(self._run_client(number)) for number in range(self._clients)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def served_after(self, moment: float) -> float:
        """Seconds from `moment` to the first score that was requested later."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._awaited = (moment, future)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await future

    async def _run_client(self, number: int) -> None:
        rng, sent, connection = random.Random(f"{self._label}-{number}"), 0, None  # noqa: S311 - no secret
        while not self._stopping:
            if connection is None or not connection.is_open:
                connection = await self._connect()
            if connection is None:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            sent += 1
            outcome = await self._send(connection, f"{self._label}-{number}-{sent}", random_measurement(rng))
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

    async def _send(self, connection: Connection, request_id: str, body: dict[str, Any]) -> Outcome:
        request = score_request(self._service.port or 0, body, X_Request_ID=request_id)
        sent_at = time.monotonic()
        try:
            status, answer = await connection.exchange(request)
        except TimeoutError:
            connection.close()
            status, answer = HANGS, b""
        except (OSError, EOFError):  # IncompleteReadError is an EOFError
            connection.close()
            status, answer = NO_ANSWER, b""
        return Outcome(request_id, body, sent_at, time.monotonic() - sent_at, status, answer)

    def _note(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if self._awaited is not None and outcome.status == 200:
            moment, future = self._awaited
            if outcome.sent_at >= moment and not future.done():
                future.set_result(outcome.sent_at + outcome.seconds - moment)
