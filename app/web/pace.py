"""The pace at which callers without a valid credential are refused, all of them together.

Beyond it their answers wait, and so do they: a flood of refusals then takes little from those who may ask. Nobody else
waits for them, because the connection that waits is theirs. Whoever mistypes a key does not notice.
"""

import asyncio

from starlette.types import Scope

PER_SECOND = 100
BURST = 100  # after a quiet second so many leave at once
LONGEST_SECONDS = 2.0
HELD_BACK = "held_back_seconds"  # in the scope: how long the answer waited, which is not the time that it took


class Pace:
    def __init__(self) -> None:
        self._last = 0.0  # when the last answer that was promised leaves

    def delay(self, now: float) -> float:
        """Seconds until the next answer may leave."""
        step = 1 / PER_SECOND
        self._last = min(max(self._last, now - BURST * step) + step, now + LONGEST_SECONDS)
        return max(self._last - now, 0.0)


async def hold_back(scope: Scope) -> None:
    application = scope["app"]
    delay = application.pace.delay(asyncio.get_running_loop().time())
    if delay and not application.runtime.is_draining:
        scope[HELD_BACK] = delay
        await asyncio.sleep(delay)
