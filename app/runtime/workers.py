"""Where a process computes what takes long, so that scores of others are not held up: a thread for pictures, a thread
for batches, and a process for pixels. Each belongs to one event loop, and has a limit on what may wait for it, of which
one caller may have half. Callers who wait for pictures take turns.

One thread each: a second one would only compete with it for the interpreter.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeVar
from weakref import WeakValueDictionary

from app.charts import png
from app.errors import NormalcyError, ScoringQueueFull, TooManyBatches

T = TypeVar("T")

MAX_DRAWINGS = 64  # requests that wait for their pictures; more are answered with 503
MAX_PNGS = 16  # requests that wait for a PNG, which take 90 ms each; more are answered with 503
HANGS_AFTER_S = 15.0  # a process that has not answered by then is replaced
# Isolated: neither the environment nor the working directory decides what it imports.
RASTERISER = (sys.executable, "-I", png.__file__)
SLOTS = 4  # batches at a time: each holds its body and its items in memory, and more of them would be no faster
WAITING_BLOCKS = 2  # for their records, of all batches: most of the queue of the audit is left to single requests


class Slots:
    """A limit on what callers have in progress or in a queue. One caller alone can take half of it."""

    def __init__(self, total: int, full: type[NormalcyError]) -> None:
        self._total, self._full = total, full
        self.taken: Counter[str] = Counter()  # by caller
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # of callers who have one

    @contextmanager
    def take(self, caller: str) -> Iterator[None]:
        """One of them. Raises `full`."""
        if self.taken[caller] >= self._total // 2 or self.taken.total() >= self._total:
            raise self._full
        self.taken[caller] += 1
        try:
            yield
        finally:
            self.taken -= Counter([caller])  # without the callers that have none

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """As `take`, but not before those that the caller took earlier have ended: so nobody waits for all of them."""
        with self.take(caller):
            async with self._turns.setdefault(caller, asyncio.Lock()):
                yield


class DrawingThread:
    """Draws pictures, which take milliseconds of computing."""

    def __init__(self, capacity: int = MAX_DRAWINGS) -> None:
        self._threads = ThreadPoolExecutor(1, "drawing")
        self._slots = Slots(capacity, ScoringQueueFull)

    async def run(self, caller: str, work: Callable[[], T], deadline: float) -> T:
        """What `work` returns or raises. Raises ScoringQueueFull if too many wait, or at the deadline (loop time)."""
        try:
            async with asyncio.timeout_at(deadline), self._slots.turn(caller):
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except TimeoutError:
            raise ScoringQueueFull from None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class BatchThread:
    """What all batches share: slots, a thread that computes, and a limit on blocks that wait for their records."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "batches")
        self.recording = asyncio.Semaphore(WAITING_BLOCKS)
        self.slots = Slots(SLOTS, TooManyBatches)  # a batch has one from before its body is read until it was answered

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. Blocks of several batches take turns."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


class Rasteriser:
    """A process that turns pictures into pixels (`app.charts.png`). It starts with the first PNG and ends with ours."""

    def __init__(self, capacity: int = MAX_PNGS) -> None:
        self._slots = Slots(capacity, ScoringQueueFull)
        self._turn = asyncio.Lock()
        self._process: Process | None = None

    async def png(self, caller: str, svg: str, scale: int, deadline: float) -> bytes:
        """Raises ScoringQueueFull if too many wait, at the deadline (loop time), or if the process failed."""
        # At the deadline only the request gives up. The process goes on, so that one that starts slowly on a busy
        # machine is there for the next request.
        work = asyncio.create_task(self._render_in_turn(caller, svg.encode(), scale, deadline))
        work.add_done_callback(_finished)
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

    async def _render_in_turn(self, caller: str, svg: bytes, scale: int, deadline: float) -> bytes:
        async with self._slots.turn(caller), self._turn:
            if asyncio.get_running_loop().time() >= deadline:
                raise TimeoutError  # nobody waits for it any more
            async with asyncio.timeout(HANGS_AFTER_S):
                return await self._render(svg, scale)

    async def _render(self, svg: bytes, scale: int) -> bytes:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(*RASTERISER, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
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


def _finished(work: asyncio.Task[bytes]) -> None:
    if not work.cancelled():
        work.exception()  # it is not unexpected where the request has given up
