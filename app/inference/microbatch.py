"""The micro-batcher: measurements that arrive in one iteration of the event loop are scored in one vectorised call.

Only measurements of the same model with the same options share a call, and other work of the event loop runs between
two calls: many unusual options at once cannot block it for longer than one of them takes.

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

MAX_BATCH = 64  # measurements of one call; more would block the event loop for over 10 ms
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
        together: int = MAX_BATCH,
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
        alike = self._take_alike()
        if self._queue:
            asyncio.get_running_loop().call_soon(self._run)
        self._resolve(alike)

    def _take_alike(self) -> list[_Waiting]:
        """The first in the queue, and those behind it that can be scored in the same call."""
        first = _options(self._queue[0])
        alike: list[_Waiting] = []
        others: deque[_Waiting] = deque()
        while self._queue and len(alike) < self._together:
            waiting = self._queue.popleft()
            (alike if _options(waiting) == first else others).append(waiting)
        self._queue.extendleft(reversed(others))
        return alike

    def _resolve(self, alike: list[_Waiting]) -> None:
        try:
            answers = self._score(alike[0].model, [waiting.query for waiting in alike])
        except Exception as error:  # noqa: BLE001 - it belongs to the request
            self._resolve_failure(alike, error)
            return
        for waiting, answer in zip(alike, answers, strict=True):
            if not waiting.answer.done():  # its request was given up
                waiting.answer.set_result(answer)

    def _resolve_failure(self, alike: list[_Waiting], error: Exception) -> None:
        """One bad measurement fails its own request, not those that arrived with it."""
        if len(alike) > 1:
            for waiting in alike:
                self._resolve([waiting])
        elif not alike[0].answer.done():
            alike[0].answer.set_exception(error)


def _options(waiting: _Waiting) -> tuple[int, tuple[float, ...], float]:
    return id(waiting.model), waiting.query.thresholds, waiting.query.hdi_probability
