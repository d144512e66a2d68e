"""Limits for callers: a token bucket and a number of requests in flight for each principal, and a lock-out for
credentials that are wrong again and again.

All are counted by this process alone, on a clock that never jumps. None can be used against others: the first two
belong to a caller that has authenticated, and a lock-out only turns 401 into 429. A valid credential always passes it.
"""

import hashlib
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from app.database.keys import key_id_of

MAX_TRACKED = 10_000  # callers, or credentials that were refused
MAX_IN_FLIGHT = 256  # of one caller: half of the measurements that may wait to be scored, or for their records
MAX_FAILURES = 20  # of one credential from one address within the lock-out's time
LOCK_OUT_SECONDS = 60.0
ROUNDING = 1e-6  # tokens


class OverRate(NamedTuple):
    """What the headers of a 429 say."""

    retry_seconds: int
    quota: int
    window_seconds: int


class RateLimiter:
    """A bucket holds `burst` tokens and is refilled at `per_second`. It is stored as the time when it will be full."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`per_second` 0: no limit."""
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._full_at: dict[str, float] = {}

    def take(self, name: str) -> OverRate | None:
        """Takes a token for one request; None if there was one."""
        if not self._per_second:
            return None
        now = self._clock()
        full_at = max(self._full_at.get(name, now), now)
        missing = 1 - self._burst + (full_at - now) * self._per_second
        if missing > ROUNDING:
            return OverRate(
                math.ceil(missing / self._per_second), self._burst, math.ceil(self._burst / self._per_second)
            )
        if len(self._full_at) >= MAX_TRACKED:
            self._full_at = {each: when for each, when in self._full_at.items() if when > now}
        self._full_at[name] = full_at + 1 / self._per_second
        return None


class InFlight:
    """Requests that are being answered; one with several measurements counts as so many. One caller alone, at whatever
    rate, cannot fill the queues that all share."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def begin(self, name: str, more: int = 1) -> bool:
        """Whether the caller may have so many more."""
        count = self._counts.get(name, 0) + more
        if count > MAX_IN_FLIGHT:
            return False
        self._counts[name] = count
        return True

    def end(self, name: str, number: int = 1) -> None:
        count = self._counts.pop(name)
        if count > number:
            self._counts[name] = count - number


class LockOuts:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[tuple[str, str], tuple[float, int]] = {}  # when the first one was, and how many

    def add(self, address: str, presented: str) -> int:
        """Counts a refused credential. Returns for how many seconds it is locked out; 0: it is not."""
        now, who = self._clock(), (address, _identity(presented))
        began, count = self._failures.get(who, (now, 0))
        if now - began >= LOCK_OUT_SECONDS:
            began, count = now, 0
        if count == 0 and len(self._failures) >= MAX_TRACKED:
            del self._failures[next(iter(self._failures))]  # the oldest
        self._failures[who] = (began, count + 1)
        return math.ceil(began + LOCK_OUT_SECONDS - now) if count >= MAX_FAILURES else 0


def _identity(presented: str) -> str:
    """The id of a key; of anything else a hash, so that nobody else's wrong credential counts."""
    return key_id_of(presented) or hashlib.sha256(presented.encode("utf-8", "surrogatepass")).hexdigest()
