"""The process that turns pictures into pixels: see `app.charts.png` for why it is not this one."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress

from app.charts import png
from app.errors import ScoringQueueFull

CAPACITY = 32  # requests that wait for a PNG; more are answered with 503
HANGS_AFTER_S = 15.0  # a process that has not answered by then is replaced
# Isolated: neither the environment nor the working directory decides what it imports.
COMMAND = (sys.executable, "-I", png.__file__)


class Rasteriser:
    """Belongs to one event loop. The process starts with the first PNG and ends with this one's."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity, self._waiting = capacity, 0
        self._turn = asyncio.Lock()
        self._process: Process | None = None

    async def png(self, svg: str, scale: int, deadline: float) -> bytes:
        """Raises ScoringQueueFull if too many wait, at the deadline (loop time), or if the process failed."""
        if self._waiting >= self._capacity:
            raise ScoringQueueFull
        self._waiting += 1
        # At the deadline only the request gives up. The process goes on, so that one that starts slowly on a busy
        # machine is there for the next request.
        work = asyncio.create_task(self._render_in_turn(svg.encode(), scale, deadline))
        work.add_done_callback(self._finished)
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(work)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            raise ScoringQueueFull from None

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):  # it has ended by itself
                process.kill()
            await process.wait()

    def _finished(self, work: asyncio.Task[bytes]) -> None:
        self._waiting -= 1
        if not work.cancelled():
            work.exception()  # it is not unexpected where the request has given up

    async def _render_in_turn(self, svg: bytes, scale: int, deadline: float) -> bytes:
        async with self._turn:
            if asyncio.get_running_loop().time() >= deadline:
                raise TimeoutError  # nobody waits for it any more
            async with asyncio.timeout(HANGS_AFTER_S):
                return await self._render(svg, scale)

    async def _render(self, svg: bytes, scale: int) -> bytes:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(*COMMAND, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            raise AssertionError("The process was started with pipes.")
        try:
            requests.write(png.REQUEST.pack(scale, len(svg)) + svg)
            await requests.drain()
            [length] = png.ANSWER.unpack(await answers.readexactly(png.ANSWER.size))
            return await answers.readexactly(length)
        except BaseException:
            await asyncio.shield(self.close())  # an answer that is not read to its end would be taken for the next one
            raise
