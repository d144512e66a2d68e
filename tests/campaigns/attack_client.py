"""The attackers, a process of their own: prepared bytes on plain sockets, so that they take little processor time.

    python -m tests.campaigns.attack_client pipelined|refused PORT CONNECTIONS SECONDS

`pipelined`: every connection sends 20 MB of `GET /` without waiting for answers, every second one the bare form without
a Host. `refused`: every connection scores without a key, and again as soon as it is refused. A closed connection is
opened again at once. Prints {"opened", "sent_mb", "answers"} as JSON.
"""

import json
import selectors
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.campaigns.load_client import requests

PIPELINED_BYTES = 20_000_000
READ, BOTH = selectors.EVENT_READ, selectors.EVENT_READ | selectors.EVENT_WRITE
ANSWER = b"HTTP/1.1 "


@dataclass(slots=True)
class Tally:
    opened: int = 0
    sent: int = 0  # bytes
    answers: int = 0


def pipelined(port: int) -> list[memoryview]:
    with_host = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port
    return [memoryview(one * (PIPELINED_BYTES // len(one))) for one in (with_host, b"GET / HTTP/1.1\r\n\r\n")]


def refused(port: int) -> list[memoryview]:
    return [memoryview(requests(port)[0])]


ATTACKS: dict[str, Callable[[int], list[memoryview]]] = {"pipelined": pipelined, "refused": refused}


class Attacker:
    """One connection at a time, opened again when the server closes it."""

    def __init__(self, port: int, content: memoryview, again: bool, selector: selectors.BaseSelector, tally: Tally):
        self._port, self._content, self._again, self._selector, self._tally = port, content, again, selector, tally
        self._connect()

    def act(self, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                self._read()
            if events & selectors.EVENT_WRITE and self._left:
                self._write()
        except BlockingIOError:
            return
        except OSError:  # closed, by a reset or not
            self._selector.unregister(self._socket)
            self._socket.close()
            self._connect()

    def _connect(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self._port))
        self._socket.setblocking(False)
        self._tally.opened += 1
        self._left = self._content
        self._selector.register(self._socket, BOTH, self)

    def _read(self) -> None:
        received = self._socket.recv(65536)
        if not received:
            raise ConnectionResetError
        found = received.count(ANSWER)
        self._tally.answers += found
        if found and self._again:
            self._left = self._content
            self._selector.modify(self._socket, BOTH, self)

    def _write(self) -> None:
        count = self._socket.send(self._left)
        self._tally.sent += count
        self._left = self._left[count:]
        if not self._left:
            self._selector.modify(self._socket, READ, self)


def attack(kind: str, port: int, connections: int, seconds: float) -> dict[str, float]:
    contents, tally = ATTACKS[kind](port), Tally()
    ends_at = time.perf_counter() + seconds
    with selectors.DefaultSelector() as selector:
        for number in range(connections):
            Attacker(port, contents[number % len(contents)], kind == "refused", selector, tally)
        while time.perf_counter() < ends_at:
            for key, events in selector.select(0.05):
                key.data.act(events)
    return {"opened": tally.opened, "sent_mb": tally.sent / 1e6, "answers": tally.answers}


if __name__ == "__main__":
    found = attack(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    sys.stdout.write(json.dumps(found))
