"""What all batches of a process share: slots, one thread that computes, and a limit on blocks that wait for records."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from app.errors import TooManyBatches

T = TypeVar("T")

SLOTS = 4  # batches at a time: each holds its body and its items in memory, and more of them would be no faster
SLOTS_OF_ONE_CALLER = 2
WAITING_BLOCKS = 2  # for their records, of all batches: most of the queue of the audit is left to single requests


class BatchLane:
    """Belongs to one event loop. One thread: a second one would only compete with it for the interpreter."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "batches")
        self.recording = asyncio.Semaphore(WAITING_BLOCKS)
        self._in_progress: Counter[str] = Counter()  # by caller

    @contextmanager
    def slot(self, caller: str) -> Iterator[None]:
        """For one batch, from before its body is read until its response was sent. Raises TooManyBatches."""
        if self._in_progress[caller] >= SLOTS_OF_ONE_CALLER or self._in_progress.total() >= SLOTS:
            raise TooManyBatches
        self._in_progress[caller] += 1
        try:
            yield
        finally:
            self._in_progress -= Counter([caller])  # without the callers that have none

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. Blocks of several batches take turns."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
