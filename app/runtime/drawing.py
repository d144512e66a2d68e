"""The thread that draws: pictures take milliseconds of computing, which must not hold up the scores of others."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.errors import ScoringQueueFull

T = TypeVar("T")

CAPACITY = 64  # requests that wait for their pictures; more are answered with 503


class DrawingThread:
    """Belongs to one event loop. One thread: a second one would only compete with it for the interpreter."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._threads = ThreadPoolExecutor(1, "drawing")
        self._capacity, self._waiting = capacity, 0

    async def run(self, work: Callable[[], T], deadline: float) -> T:
        """What `work` returns or raises. Raises ScoringQueueFull if too many wait, or at the deadline (loop time)."""
        if self._waiting >= self._capacity:
            raise ScoringQueueFull
        self._waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except TimeoutError:
            raise ScoringQueueFull from None
        finally:
            self._waiting -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
