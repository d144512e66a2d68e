"""Where readings meet: those that are ready in the same turn of the event loop are scored in one vectorised call.

A lone reading waits for nobody: it is scored at the end of its own turn. What was asked with one version of a model is
never computed with another, because a request brings the model that it found on arrival.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from app.domain.query import ScoreQuery
from app.errors import ScoringQueueFull
from app.inference.executor import LoadedModel

Answer = TypeVar("Answer")

TOGETHER = 64  # readings of one turn; more would keep the loop from its sockets for over 10 ms
CAPACITY = 512  # readings that may wait; as many as may wait for their record


class _Waiting(NamedTuple):
    model: LoadedModel
    query: ScoreQuery
    answer: asyncio.Future[Any]


class MicroBatcher(Generic[Answer]):
    """Belongs to one event loop. `score` gives one answer per question, in order."""

    def __init__(
        self,
        score: Callable[[LoadedModel, Sequence[ScoreQuery]], Sequence[Answer]],
        together: int = TOGETHER,
        capacity: int = CAPACITY,
    ) -> None:
        self._score, self._together, self._capacity = score, together, capacity
        self._line: deque[_Waiting] = deque()
        self._seen = 0  # how long the line was at the last look

    @property
    def depth(self) -> int:
        """Readings that wait."""
        return len(self._line)

    def submit(self, model: LoadedModel, query: ScoreQuery) -> asyncio.Future[Answer]:
        """Its answer, or what the scorer raises for this question alone. Raises ScoringQueueFull."""
        if len(self._line) >= self._capacity:
            raise ScoringQueueFull
        loop = asyncio.get_running_loop()
        if not self._line:
            loop.call_soon(self._turn)
        answer: asyncio.Future[Answer] = loop.create_future()
        self._line.append(_Waiting(model, query, answer))
        return answer

    def _turn(self) -> None:
        """Score, unless more came since the last look: then look once more first. No timer, so no idle waiting."""
        if self._seen < len(self._line) < self._together:
            self._seen = len(self._line)
            asyncio.get_running_loop().call_soon(self._turn)
            return
        self._seen = 0
        by_model: dict[int, list[_Waiting]] = {}
        for _ in range(min(self._together, len(self._line))):
            waiting = self._line.popleft()
            by_model.setdefault(id(waiting.model), []).append(waiting)
        if self._line:
            asyncio.get_running_loop().call_soon(self._turn)
        for alike in by_model.values():
            self._settle(alike)

    def _settle(self, alike: list[_Waiting]) -> None:
        try:
            answers = self._score(alike[0].model, [waiting.query for waiting in alike])
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to whoever asked
            self._settle_failure(alike, error)
            return
        for waiting, answer in zip(alike, answers, strict=True):
            if not waiting.answer.done():  # its request was given up
                waiting.answer.set_result(answer)

    def _settle_failure(self, alike: list[_Waiting], error: Exception) -> None:
        """One bad reading fails its own request, not those that happened to arrive with it."""
        if len(alike) > 1:
            for waiting in alike:
                self._settle([waiting])
        elif not alike[0].answer.done():
            alike[0].answer.set_exception(error)
