"""A TCP proxy on loopback between the service and PostgreSQL, for networks that are slow, silent or broken."""

import asyncio
import contextlib
import socket
import struct
from enum import Enum, auto
from pathlib import Path

CHUNK_BYTES = 65_536
RESET = struct.pack("ii", 1, 0)  # SO_LINGER for no time: closing sends RST instead of FIN


class Network(Enum):
    GOOD = auto()
    SLOW = auto()  # every chunk waits, in both directions
    BLACK_HOLE = auto()  # every byte is taken and none arrives; new connections are accepted and never served
    RESETTING = auto()  # every connection is reset, old or new


class NetworkProxy:
    """`async with NetworkProxy(socket of PostgreSQL) as proxy`: `proxy.network` can be changed at any time."""

    def __init__(self, upstream: Path, delay_seconds: float = 1.0) -> None:
        self._upstream, self._delay = upstream, delay_seconds
        self._clients: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._network = Network.GOOD
        self.port = 0

    async def __aenter__(self) -> "NetworkProxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def network(self) -> Network:
        return self._network

    @network.setter
    def network(self, network: Network) -> None:
        self._network = network
        if network is Network.RESETTING:
            for client in self._clients:
                reset(client)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._clients.add(writer)
        task.add_done_callback(self._tasks.discard)
        try:
            if self._network is Network.RESETTING:
                reset(writer)
            else:
                await self._connect_and_copy(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._clients.discard(writer)
            writer.close()

    async def _connect_and_copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_database, to_database = await asyncio.open_unix_connection(str(self._upstream))
        copies = [
            asyncio.create_task(self._copy(reader, to_database)),
            asyncio.create_task(self._copy(from_database, writer)),
        ]
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for copy in copies:
                copy.cancel()
            await asyncio.gather(*copies, return_exceptions=True)
            to_database.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        swallowed = False  # once bytes were lost, what follows makes no sense to the other side
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                swallowed |= self._network is Network.BLACK_HOLE
                if swallowed:
                    continue
                if self._network is Network.SLOW:
                    await asyncio.sleep(self._delay)
                writer.write(data)
                await writer.drain()


def reset(writer: asyncio.StreamWriter) -> None:
    found: socket.socket | None = writer.get_extra_info("socket")
    if found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
