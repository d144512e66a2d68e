"""What all batches of a process share: one thread that computes, and a limit on blocks that wait for their records."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

WAITING_BLOCKS = 2  # for their records, of all batches: most of the queue of the audit is left to single requests


class BatchLane:
    """Belongs to one event loop. One thread: a second one would only compete with it for the interpreter."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "batches")
        self.recording = asyncio.Semaphore(WAITING_BLOCKS)

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. Blocks of several batches take turns."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
