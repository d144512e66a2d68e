"""The micro-batcher: measurements that arrive in one iteration of the event loop are scored in one vectorised call.

A single measurement does not wait: it is scored at the end of its own iteration. No query is computed with another
version of a model than the one that was current when it arrived, because it is submitted together with that model.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from app.domain.query import ScoreQuery
from app.errors import ScoringQueueFull
from app.inference.executor import LoadedModel

Answer = TypeVar("Answer")

TOGETHER = 64  # measurements of one call; more would block the event loop for over 10 ms
CAPACITY = 512  # measurements in the queue; as many as may wait for their record


class _Waiting(NamedTuple):
    model: LoadedModel
    query: ScoreQuery
    answer: asyncio.Future[Any]


class MicroBatcher(Generic[Answer]):
    """Belongs to one event loop. `score` returns one answer per query, in order."""

    def __init__(
        self,
        score: Callable[[LoadedModel, Sequence[ScoreQuery]], Sequence[Answer]],
        together: int = TOGETHER,
        capacity: int = CAPACITY,
    ) -> None:
        self._score, self._together, self._capacity = score, together, capacity
        self._queue: deque[_Waiting] = deque()
        self._seen = 0  # length of the queue at the last check

    @property
    def depth(self) -> int:
        """Measurements in the queue."""
        return len(self._queue)

    def submit(self, model: LoadedModel, query: ScoreQuery) -> asyncio.Future[Answer]:
        """Its answer, or what the scorer raises for this query alone. Raises ScoringQueueFull."""
        if len(self._queue) >= self._capacity:
            raise ScoringQueueFull
        loop = asyncio.get_running_loop()
        if not self._queue:
            loop.call_soon(self._run)
        answer: asyncio.Future[Answer] = loop.create_future()
        self._queue.append(_Waiting(model, query, answer))
        return answer

    def _run(self) -> None:
        """Score, unless more arrived since the last check: then check once more first. No timer, so no idle waiting."""
        if self._seen < len(self._queue) < self._together:
            self._seen = len(self._queue)
            asyncio.get_running_loop().call_soon(self._run)
            return
        self._seen = 0
        by_model: dict[int, list[_Waiting]] = {}
        for _ in range(min(self._together, len(self._queue))):
            waiting = self._queue.popleft()
            by_model.setdefault(id(waiting.model), []).append(waiting)
        if self._queue:
            asyncio.get_running_loop().call_soon(self._run)
        for alike in by_model.values():
            self._settle(alike)

    def _settle(self, alike: list[_Waiting]) -> None:
        try:
            answers = self._score(alike[0].model, [waiting.query for waiting in alike])
        except Exception as error:  # noqa: BLE001 - it belongs to the request
            self._settle_failure(alike, error)
            return
        for waiting, answer in zip(alike, answers, strict=True):
            if not waiting.answer.done():  # its request was given up
                waiting.answer.set_result(answer)

    def _settle_failure(self, alike: list[_Waiting], error: Exception) -> None:
        """One bad measurement fails its own request, not those that arrived with it."""
        if len(alike) > 1:
            for waiting in alike:
                self._settle([waiting])
        elif not alike[0].answer.done():
            alike[0].answer.set_exception(error)
