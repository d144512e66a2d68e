"""The process that rasterises: it does not hold up the event loop, and a failure costs one request. What waits for it,
or for the thread that draws, is limited."""

import asyncio

import pytest

from app.charts.png import rasterise
from app.errors import ScoringQueueFull
from app.runtime.workers import DrawingThread, Rasteriser

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="800" height="600"><circle cx="400" cy="300" r="200"/></svg>'


def test_the_process_gives_the_same_bytes_and_leaves_the_loop_free() -> None:
    async def run() -> tuple[bytes, int]:
        rasteriser, loop = Rasteriser(), asyncio.get_running_loop()
        await rasteriser.png("a", SVG, 1, loop.time() + 30)  # it starts
        rendering = asyncio.create_task(rasteriser.png("a", SVG, 3, loop.time() + 30))
        turns = 0
        while not rendering.done():
            await asyncio.sleep(0)
            turns += 1
        drawn = await rendering
        await rasteriser.close()
        return drawn, turns

    drawn, turns = asyncio.run(run())
    assert drawn == rasterise(SVG, 3)
    assert turns > 20  # in a thread it would be one or two: the renderer holds the interpreter


def test_a_picture_that_cannot_be_drawn_costs_one_request() -> None:
    async def run() -> bytes:
        rasteriser, loop = Rasteriser(), asyncio.get_running_loop()
        with pytest.raises(ScoringQueueFull):
            await rasteriser.png("a", "<svg", 1, loop.time() + 30)
        with pytest.raises(ScoringQueueFull):
            await rasteriser.png("a", SVG, 1, loop.time())  # the deadline has passed
        drawn = await rasteriser.png("a", SVG, 1, loop.time() + 30)
        await rasteriser.close()
        return drawn

    assert asyncio.run(run()) == rasterise(SVG, 1)


def test_a_process_that_starts_slowly_serves_the_next_request() -> None:
    """On a busy machine the first picture can miss its deadline; the second must not start from nothing again."""

    async def run() -> tuple[object, object]:
        rasteriser, loop = Rasteriser(), asyncio.get_running_loop()
        with pytest.raises(ScoringQueueFull):
            await rasteriser.png("a", SVG, 1, loop.time() + 0.001)  # less than any process takes to start
        await rasteriser.png("a", SVG, 1, loop.time() + 30)
        first = rasteriser._process
        with pytest.raises(ScoringQueueFull):
            await rasteriser.png("a", SVG, 3, loop.time() + 0.001)
        drawn = await rasteriser.png("a", SVG, 1, loop.time() + 30)
        assert drawn == rasterise(SVG, 1)  # not the answer of the one before
        second = rasteriser._process
        await rasteriser.close()
        return first, second

    first, second = asyncio.run(run())
    assert first is second is not None


async def draw_all(kind: type[DrawingThread | Rasteriser], callers: str) -> list[tuple[str, object]]:
    """What each of them gets, in the order in which they get it."""
    worker, ends, found = kind(capacity=4), asyncio.get_running_loop().time() + 30, list[tuple[str, object]]()

    async def draw(caller: str) -> None:
        try:
            if isinstance(worker, Rasteriser):
                found.append((caller, await worker.png(caller, SVG, 1, ends)))
            else:
                found.append((caller, await worker.run(caller, SVG.encode, ends)))
        except ScoringQueueFull as error:
            found.append((caller, error))

    await asyncio.gather(*map(draw, callers))
    await draw("a")  # what has ended makes room
    closing = worker.close()
    if closing is not None:
        await closing
    return found


@pytest.mark.req("REQ-103")
@pytest.mark.parametrize("kind", [DrawingThread, Rasteriser])
def test_one_caller_can_fill_half_of_the_queue_and_several_all_of_it(kind: type[DrawingThread | Rasteriser]) -> None:
    found = asyncio.run(draw_all(kind, "aaabcd"))
    assert [caller for caller, each in found if isinstance(each, ScoringQueueFull)] == ["a", "d"]


@pytest.mark.parametrize("kind", [DrawingThread, Rasteriser])
def test_callers_take_turns(kind: type[DrawingThread | Rasteriser]) -> None:
    assert "".join(caller for caller, _ in asyncio.run(draw_all(kind, "aab"))) == "abaa"
