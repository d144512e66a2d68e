import pytest

from app.database.keys import make_key
from app.runtime import rate_limits
from app.runtime.rate_limits import LOCK_OUT_SECONDS, MAX_FAILURES, LockOuts, OverRate, RateLimiter
from tests.runtime.test_credentials import NOW

KEY = make_key("a", ["score"], NOW).text


class Clock:
    def __init__(self) -> None:
        self.now = 1e6

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def taken(limiter: RateLimiter, name: str, times: int) -> int:
    return sum(limiter.take(name) is None for _ in range(times))


def test_a_burst_then_the_rate(clock: Clock) -> None:
    limiter = RateLimiter(50, 100, clock)
    assert taken(limiter, "a", 150) == 100
    clock.now += 0.1
    assert taken(limiter, "a", 150) == 5
    clock.now += 3600  # a bucket is never more than full
    assert taken(limiter, "a", 150) == 100


def test_refused_requests_cost_nothing(clock: Clock) -> None:
    limiter = RateLimiter(10, 1, clock)
    assert taken(limiter, "a", 1000) == 1
    clock.now += 0.1
    assert taken(limiter, "a", 1) == 1


def test_a_refusal_says_how_long_to_wait(clock: Clock) -> None:
    limiter = RateLimiter(0.5, 2, clock)
    assert taken(limiter, "a", 2) == 2
    assert limiter.take("a") == OverRate(retry_seconds=2, quota=2, window_seconds=4)
    clock.now += 2
    assert limiter.take("a") is None


def test_callers_have_buckets_of_their_own(clock: Clock) -> None:
    limiter = RateLimiter(50, 100, clock)
    assert taken(limiter, "a", 500) == taken(limiter, "b", 500) == 100


def test_without_a_limit_everything_passes(clock: Clock) -> None:
    assert taken(RateLimiter(0, 1, clock), "a", 1000) == 1000


def test_full_buckets_are_forgotten(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MAX_TRACKED", 10)
    limiter = RateLimiter(1, 5, clock)
    taken(limiter, "busy", 5)
    clock.now += 1
    for number in range(100):
        limiter.take(str(number))
        clock.now += 0.01
    assert limiter.take("busy") is None
    clock.now += 10
    limiter.take("last")
    assert len(limiter._full_at) == 1


def test_a_credential_that_is_wrong_again_and_again_is_locked_out_for_its_address(clock: Clock) -> None:
    lock_outs = LockOuts(clock)
    assert [lock_outs.add("10.0.0.1", KEY) for _ in range(MAX_FAILURES)] == [0] * MAX_FAILURES
    clock.now += 10
    assert lock_outs.add("10.0.0.1", KEY) == LOCK_OUT_SECONDS - 10
    assert lock_outs.add("10.0.0.2", KEY) == 0  # of another machine, perhaps its owner's
    assert lock_outs.add("10.0.0.1", make_key("b", ["score"], NOW).text) == 0
    clock.now += LOCK_OUT_SECONDS - 10
    assert lock_outs.add("10.0.0.1", KEY) == 0


def test_other_secrets_of_the_same_key_count_together_and_other_tokens_do_not(clock: Clock) -> None:
    lock_outs = LockOuts(clock)
    for letter in "abcdefghijklmnopqrst":
        assert lock_outs.add("10.0.0.1", KEY[:-1] + letter) == 0
    assert lock_outs.add("10.0.0.1", KEY) > 0
    assert [lock_outs.add("10.0.0.1", f"token.{number}") for number in range(100)] == [0] * 100


def test_the_memory_for_lock_outs_is_limited(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MAX_TRACKED", 10)
    lock_outs = LockOuts(clock)
    for number in range(100):
        lock_outs.add("10.0.0.1", str(number))
    assert len(lock_outs._failures) == 10
