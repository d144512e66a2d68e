"""The process that rasterises: it does not hold up the event loop, and a failure costs one request."""

import asyncio

import pytest

from app.charts.png import rasterise
from app.errors import ScoringQueueFull
from app.runtime.workers import Rasteriser

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="800" height="600"><circle cx="400" cy="300" r="200"/></svg>'


def test_the_process_gives_the_same_bytes_and_leaves_the_loop_free() -> None:
    async def run() -> tuple[bytes, int]:
        rasteriser, loop = Rasteriser(), asyncio.get_running_loop()
        await rasteriser.png(SVG, 1, loop.time() + 30)  # it starts
        rendering = asyncio.create_task(rasteriser.png(SVG, 3, loop.time() + 30))
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
            await rasteriser.png("<svg", 1, loop.time() + 30)
        with pytest.raises(ScoringQueueFull):
            await rasteriser.png(SVG, 1, loop.time())  # the deadline has passed
        drawn = await rasteriser.png(SVG, 1, loop.time() + 30)
        await rasteriser.close()
        return drawn

    assert asyncio.run(run()) == rasterise(SVG, 1)


def test_a_process_that_starts_slowly_serves_the_next_request() -> None:
    """On a busy machine the first picture can miss its deadline; the second must not start from nothing again."""

    async def run() -> tuple[object, object]:
        rasteriser, loop = Rasteriser(), asyncio.get_running_loop()
        with pytest.raises(ScoringQueueFull):
            await rasteriser.png(SVG, 1, loop.time() + 0.001)  # less than any process takes to start
        await rasteriser.png(SVG, 1, loop.time() + 30)
        first = rasteriser._process
        with pytest.raises(ScoringQueueFull):
            await rasteriser.png(SVG, 3, loop.time() + 0.001)
        assert await rasteriser.png(SVG, 1, loop.time() + 30) == rasterise(SVG, 1)  # not the answer of the one before
        second = rasteriser._process
        await rasteriser.close()
        return first, second

    first, second = asyncio.run(run())
    assert first is second is not None


def test_too_many_at_once_are_rejected() -> None:
    async def run() -> list[object]:
        rasteriser, loop = Rasteriser(capacity=2), asyncio.get_running_loop()
        asked = [rasteriser.png(SVG, 1, loop.time() + 30) for _ in range(3)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        await rasteriser.close()
        return list(found)

    assert [type(one) for one in asyncio.run(run())] == [bytes, bytes, ScoringQueueFull]
