"""The load generator, a process of its own: keep-alive connections that ask again as soon as they are answered.

    python -m tests.campaigns.http_load_client PORT CONNECTIONS SECONDS [KEY]

Prints {"answers", "seconds", "refusals"} as JSON. It looks at the status and the length of an answer and at nothing
else, so that it takes little of the machine beside the server.
"""

import asyncio
import json
import random
import re
import sys
import time
from dataclasses import dataclass
from typing import cast

import uvloop

READINGS = 512  # different ones
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
STATED = {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}


def requests(port: int, key: str = "", seed: int = 1) -> list[bytes]:
    """Adults of common sizes, as bytes to send."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    return [_request(port, key, reading(rng)) for _ in range(READINGS)]


def reading(rng: random.Random) -> dict[str, object]:
    return {
        "age_years": round(rng.uniform(20, 75), 1),
        "sex": rng.choice(["male", "female"]),
        "height_cm": rng.randint(155, 190),
        "weight_kg": rng.randint(55, 95),
        "diameter_mm": round(rng.uniform(27, 44), 1),
        "convention": STATED,
    }


def _request(port: int, key: str, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    credential = f"Authorization: Bearer {key}\r\n" if key else ""
    head = (
        f"POST /v1/sites/SoV/score HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"{credential}Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


@dataclass(slots=True)
class Tally:
    ends_at: float
    answers: int = 0
    refusals: int = 0  # whatever is not 200


class Asker(asyncio.Protocol):
    def __init__(self, queries: list[bytes], first: int, tally: Tally, done: asyncio.Future[None]) -> None:
        self._questions, self._next, self._tally, self._done = queries, first, tally, done
        self._missing = 0  # bytes of the answer that is arriving; 0: its head is awaited
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error or ConnectionResetError("The server closed the connection."))

    def data_received(self, data: bytes) -> None:
        if not self._missing:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            length = LENGTH.search(self._head, 0, end)
            assert length is not None
            self._tally.refusals += not self._head.startswith(b"HTTP/1.1 200")
            self._missing, data, self._head = int(length[1]), self._head[end + 4 :], b""
        self._missing -= len(data)
        if self._missing == 0:
            self._tally.answers += 1
            self._ask()

    def _ask(self) -> None:
        if time.perf_counter() >= self._tally.ends_at:
            if not self._done.done():
                self._done.set_result(None)
            self._transport.close()
            return
        self._transport.write(self._questions[self._next % READINGS])
        self._next += 1


async def ask(port: int, connections: int, seconds: float, key: str = "") -> dict[str, float]:
    loop, queries = asyncio.get_running_loop(), requests(port, key)
    began = time.perf_counter()
    tally = Tally(began + seconds)
    waiting: list[asyncio.Future[None]] = []
    for number in range(connections):
        done = loop.create_future()
        waiting.append(done)
        first = number * (READINGS // connections)
        await loop.create_connection(
            lambda first=first, done=done: Asker(queries, first, tally, done),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
    await asyncio.gather(*waiting)
    return {"answers": tally.answers, "seconds": time.perf_counter() - began, "refusals": tally.refusals}


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(ask(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:]))
    sys.stdout.write(json.dumps(found))
