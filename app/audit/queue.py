"""Who waits for a commit. A request waits with all its records at once, for as long as its deadline allows.

A request that is cancelled leaves its records in the queue: they were computed, so they are recorded.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from app.audit.records import Record
from app.errors import AuditQueueFull, AuditUnavailable

CAPACITY = 512  # records; at 4,000 a second the last one waits an eighth of a second
BATCH = 256  # records of one commit


@dataclass(slots=True, eq=False)
class Group:
    """The records of one request, committed together or not at all."""

    records: Sequence[Record]
    committed: asyncio.Future[None] | None  # None: nobody waits
    expired: bool = False
    stands_for: int = 1  # refusals, if that is what it holds

    def succeed(self) -> None:
        if self.committed is not None and not self.committed.done():
            self.committed.set_result(None)

    def fail(self) -> None:
        if self.committed is not None and not self.committed.done():
            self.committed.set_exception(AuditUnavailable())

    def expire(self) -> None:
        """Its request is refused now; if it still waits, it need not be written."""
        self.expired = True
        self.fail()


class WaitingRecords:
    def __init__(self) -> None:
        self._groups: deque[Group] = deque()
        self._arrived = asyncio.Event()
        self.depth = 0  # records

    def put(self, group: Group, capacity: int = CAPACITY) -> None:
        if self.depth + len(group.records) > capacity:
            raise AuditQueueFull
        self._groups.append(group)
        self.depth += len(group.records)
        self._arrived.set()

    async def arrival(self, seconds: float) -> None:
        """Until something waits or `wake` is called, at most so long."""
        if not self._groups:
            try:
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
            except TimeoutError:
                return

    def wake(self) -> None:
        self._arrived.set()

    def take(self) -> list[Group]:
        """The next groups in order of arrival, as many as fit one commit, at least one if any waits."""
        taken: list[Group] = []
        size = 0
        while self._groups and (not taken or size + len(self._groups[0].records) <= BATCH):
            group = self._groups.popleft()
            self.depth -= len(group.records)
            if not group.expired:
                taken.append(group)
                size += len(group.records)
        if not self._groups:
            self._arrived.clear()
        return taken
