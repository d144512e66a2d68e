import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.domain.patient import Patient, Sex
from app.domain.query import ScoreQuery
from app.errors import ScoringQueueFull
from app.inference.executor import LoadedModel
from app.inference.microbatch import MicroBatcher
from tests.samples import a_loaded_model

FIRST, SECOND = a_loaded_model(0), a_loaded_model(1)


def asked(diameter: float) -> ScoreQuery:
    return ScoreQuery(Patient(45.0, Sex.MALE, 175.0, 75.0), diameter)


class Scorer:
    """Answers with the diameter, and remembers what it was given together."""

    def __init__(self) -> None:
        self.calls: list[tuple[LoadedModel, list[float]]] = []

    def __call__(self, model: LoadedModel, queries: Sequence[ScoreQuery]) -> list[float]:
        diameters = [query.diameter_mm for query in queries]
        self.calls.append((model, diameters))
        if 0.0 in diameters:
            raise ArithmeticError
        return diameters


def run(
    *diameters: float, scorer: Scorer, together: int = 64, models: Sequence[LoadedModel] = (FIRST,)
) -> list[object]:
    async def main() -> list[object]:
        batcher: MicroBatcher[float] = MicroBatcher(scorer, together)
        waiting = [batcher.submit(models[k % len(models)], asked(d)) for k, d in enumerate(diameters)]
        return await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(main())


def test_readings_of_one_turn_are_scored_in_one_call() -> None:
    scorer = Scorer()
    assert run(30.0, 31.0, 32.0, scorer=scorer) == [30.0, 31.0, 32.0]
    assert [diameters for _, diameters in scorer.calls] == [[30.0, 31.0, 32.0]]


def test_no_call_is_larger_than_a_turn_may_be() -> None:
    scorer = Scorer()
    assert run(*map(float, range(1, 8)), scorer=scorer, together=3) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert [len(diameters) for _, diameters in scorer.calls] == [3, 3, 1]


@pytest.mark.req("REQ-029")
def test_models_are_never_mixed() -> None:
    scorer = Scorer()
    assert run(1.0, 2.0, 3.0, 4.0, scorer=scorer, models=(FIRST, SECOND)) == [1.0, 2.0, 3.0, 4.0]
    assert [(model is FIRST, diameters) for model, diameters in scorer.calls] == [
        (True, [1.0, 3.0]),
        (False, [2.0, 4.0]),
    ]


def test_one_bad_reading_fails_alone() -> None:
    answers = run(30.0, 0.0, 32.0, scorer=Scorer())
    assert answers[::2] == [30.0, 32.0]
    assert isinstance(answers[1], ArithmeticError)


def test_a_lone_reading_waits_for_nobody() -> None:
    """It is scored within a fixed number of turns of the loop, with no timer and nobody else in sight."""

    async def main() -> int:
        batcher: MicroBatcher[float] = MicroBatcher(Scorer())
        answer, turns = batcher.submit(FIRST, asked(30.0)), 0
        while not answer.done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert asyncio.run(main()) <= 3


def test_those_that_come_a_turn_later_join_while_the_line_grows() -> None:
    scorer = Scorer()

    async def main() -> list[float]:
        batcher: MicroBatcher[float] = MicroBatcher(scorer)
        first = batcher.submit(FIRST, asked(30.0))
        asyncio.get_running_loop().call_soon(lambda: None)
        await asyncio.sleep(0)
        second = batcher.submit(FIRST, asked(31.0))
        return [await first, await second]

    assert asyncio.run(main()) == [30.0, 31.0]
    assert len(scorer.calls) == 1


@pytest.mark.req("REQ-103")
def test_a_full_queue_refuses_and_recovers() -> None:
    async def main() -> float:
        batcher: MicroBatcher[float] = MicroBatcher(Scorer(), capacity=2)
        waiting = [batcher.submit(FIRST, asked(30.0)), batcher.submit(FIRST, asked(31.0))]
        with pytest.raises(ScoringQueueFull):
            batcher.submit(FIRST, asked(32.0))
        await asyncio.gather(*waiting)
        assert batcher.depth == 0
        return await batcher.submit(FIRST, asked(33.0))

    assert asyncio.run(main()) == 33.0


def test_a_request_that_was_given_up_hinders_nobody() -> None:
    async def main() -> float:
        batcher: MicroBatcher[float] = MicroBatcher(Scorer())
        given_up, other = batcher.submit(FIRST, asked(30.0)), batcher.submit(FIRST, asked(31.0))
        given_up.cancel()
        return await other

    assert asyncio.run(main()) == 31.0


def test_other_work_runs_between_measurements_that_cannot_share_a_call() -> None:
    """Otherwise 64 requests with options of their own would block the event loop for the time of 64 calls."""
    scorer, ticks = Scorer(), []

    async def main() -> None:
        batcher: MicroBatcher[float] = MicroBatcher(scorer)
        waiting = [batcher.submit(FIRST, replace(asked(30.0 + k), hdi_probability=0.5 + k / 100)) for k in range(8)]
        while not all(answer.done() for answer in waiting):
            ticks.append(len(scorer.calls))
            await asyncio.sleep(0)
        assert [answer.result() for answer in waiting] == [30.0 + k for k in range(8)]

    asyncio.run(main())
    assert [len(diameters) for _, diameters in scorer.calls] == [1] * 8
    assert set(range(8)) <= set(ticks)


def test_measurements_with_the_same_options_share_a_call_whatever_arrives_between_them() -> None:
    scorer = Scorer()

    async def main() -> list[float]:
        batcher: MicroBatcher[float] = MicroBatcher(scorer)
        queries = [replace(asked(float(k)), thresholds=((2.0,), (3.0,))[k % 2]) for k in range(1, 7)]
        return list(await asyncio.gather(*[batcher.submit(FIRST, query) for query in queries]))

    assert asyncio.run(main()) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert [diameters for _, diameters in scorer.calls] == [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
