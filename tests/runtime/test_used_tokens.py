import tracemalloc

import pytest

from app.errors import TooManyTokens
from app.runtime import used_tokens
from app.runtime.used_tokens import BUCKET_SECONDS, MAX_USED, UsedTokens

NOW = 1_800_000_000.0


def test_a_token_is_remembered_until_it_has_expired() -> None:
    used = UsedTokens()
    expires = NOW + 303
    used.add("a", expires, NOW)
    assert "a" in used
    assert "b" not in used
    used.add("b", NOW + 700, expires - 0.1)
    assert "a" in used
    used.add("c", NOW + 700, expires + BUCKET_SECONDS)
    assert "a" not in used
    assert len(used) == 2


def test_a_full_memory_accepts_nothing_and_forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(used_tokens, "MAX_USED", 3)
    used = UsedTokens()
    for number in range(3):
        used.add(str(number), NOW + 60 + number * 60, NOW)
    with pytest.raises(TooManyTokens):
        used.add("new", NOW + 300, NOW)
    assert "new" not in used
    assert all(str(number) in used for number in range(3))
    used.add("new", NOW + 300, NOW + 60 + BUCKET_SECONDS)
    assert "0" not in used


def test_a_full_memory_is_small() -> None:
    tracemalloc.start()
    used = UsedTokens()
    for number in range(MAX_USED):
        used.add(f"{number:0100}", NOW + number * 360 / MAX_USED, NOW - 60)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(used) == MAX_USED
    assert size < 12e6
