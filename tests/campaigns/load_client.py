"""The load generator, a process of its own: keep-alive connections that send the next request on each answer.

    python -m tests.campaigns.load_client PORT CONNECTIONS SECONDS [KEY[,KEY...] [PATH]]

Connections take the keys in turn. Prints {"answers", "seconds", "errors", "p50_ms", "p99_ms"} as JSON. It checks the
status and the length of an answer and nothing else, so that it takes little processor time beside the server.
"""

import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any, cast

import uvloop

from tests.campaigns.messages import CONTENT_LENGTH, PATH, score_request

MEASUREMENTS = 512  # different ones
CONVENTION = {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}


def requests(port: int, key: str = "", path: str = PATH, seed: int = 1) -> list[bytes]:
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return [score_request(port, measurement(rng), path, **headers) for _ in range(MEASUREMENTS)]


def measurement(rng: random.Random) -> dict[str, Any]:
    """Well inside the range of the shipped models, with the convention stated: an answer without advisories."""
    return {
        "age_years": round(rng.uniform(20, 75), 1),
        "sex": rng.choice(["male", "female"]),
        "height_cm": rng.randint(155, 190),
        "weight_kg": rng.randint(55, 95),
        "diameter_mm": round(rng.uniform(27, 44), 1),
        "convention": CONVENTION,
    }


def first_measurement(number: int, connections: int) -> int:
    """Where a connection begins: they are spread over all measurements, however many there are."""
    return number * MEASUREMENTS // connections


@dataclass(slots=True)
class Tally:
    ends_at: float
    answers: int = 0
    errors: int = 0  # any status but 200
    waits: list[float] = field(default_factory=list)  # seconds from each request to its whole answer


class Client(asyncio.Protocol):
    def __init__(self, requests: list[bytes], first: int, tally: Tally, done: asyncio.Future[None]) -> None:
        self._requests, self._next, self._tally, self._done = requests, first, tally, done
        self._missing = 0  # bytes of the body that is arriving; 0: the head comes next
        self._head = b""
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error or ConnectionResetError("The server closed the connection."))

    def data_received(self, data: bytes) -> None:
        if not self._missing:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            length = CONTENT_LENGTH.search(self._head, 0, end + 2)
            assert length is not None
            self._tally.errors += not self._head.startswith(b"HTTP/1.1 200")
            self._missing, data, self._head = int(length[1]), self._head[end + 4 :], b""
        self._missing -= len(data)
        if self._missing == 0:
            self._tally.answers += 1
            self._tally.waits.append(time.perf_counter() - self._sent)
            self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        if self._sent >= self._tally.ends_at:
            if not self._done.done():
                self._done.set_result(None)
            self._transport.close()
            return
        self._transport.write(self._requests[self._next % MEASUREMENTS])
        self._next += 1


async def run_load(port: int, connections: int, seconds: float, keys: str = "", path: str = PATH) -> dict[str, float]:
    loop, queries = asyncio.get_running_loop(), [requests(port, key, path) for key in keys.split(",")]
    began = time.perf_counter()
    tally = Tally(began + seconds)
    waiting: list[asyncio.Future[None]] = []
    for number in range(connections):
        done = loop.create_future()
        waiting.append(done)
        first, own = first_measurement(number, connections), queries[number % len(queries)]
        await loop.create_connection(
            lambda own=own, first=first, done=done: Client(own, first, tally, done),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
    await asyncio.gather(*waiting)
    took, waits = time.perf_counter() - began, sorted(tally.waits) or [0.0]
    middle, slow = (1e3 * waits[int(share * (len(waits) - 1))] for share in (0.5, 0.99))
    return {"answers": tally.answers, "seconds": took, "errors": tally.errors, "p50_ms": middle, "p99_ms": slow}


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(run_load(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:]))
    sys.stdout.write(json.dumps(found))
