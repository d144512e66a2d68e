"""Callers who are refused again and again: they leave little on record, and nobody waits for them."""

import socket
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.audit import refusals
from app.audit.refusals import SINGLE_RECORDS
from app.clock import utc_now
from app.settings import Settings
from app.web import security
from app.web.middleware import MAX_HEADER_BYTES
from app.web.security import Throttle
from tests.web.serving import READING, SCORE, Running, bearer, create_key, serving
from tests.web.test_pipelining import answers
from tests.web.test_protocol import connect, everything, head

pytestmark = pytest.mark.slow

LONG = 3600.0  # a second that does not end while the test runs


@pytest.fixture(autouse=True)
def one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "AGGREGATION_SECONDS", LONG)


def flood(running: Running, times: int) -> list[int]:
    """Scores without a key, on one connection, sent without waiting."""
    request = head(running, 2) + b"{}"
    with closing(connect(running)) as connection:
        connection.sendall(request * (times - 1) + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        return [status for status, _ in answers(everything(connection))]


@pytest.mark.req("REQ-105")
def test_a_flood_without_a_key_leaves_one_row_and_is_counted(settings: Settings, models_dir: Path) -> None:
    key = create_key(settings, ["score", "audit:read"])
    with serving(settings, models_dir) as running:
        assert [flood(running, 50) for _ in range(6)] == [[401] * 50] * 6
        assert running.score(headers=bearer(key)).status_code == 200
        running.client.headers.update(bearer(key))
        metrics = running.runtime.metrics
        assert metrics.requests["/v1/sites/{site}/score", "POST", "401"]._value.get() == 300
        assert metrics.registry.get_sample_value("normalcy_refusals_summed_total") == 300
    [row] = running.records("refusal")
    assert (row.principal, row.status, row.request_id, row.output["count"]) == ("nobody", 401, None, 300)


def test_a_sum_is_looked_up_like_any_record(settings: Settings, models_dir: Path) -> None:
    key = create_key(settings, ["audit:read"])
    began = utc_now()
    with serving(settings, models_dir) as running:
        flood(running, 3)
    with serving(settings, models_dir) as running:
        page = running.client.get(f"/v1/audit/records?from={began:%Y-%m-%dT%H:%M:%SZ}", headers=bearer(key)).json()
    [found] = [record for record in page["records"] if record["kind"] == "refusal"]
    assert (found["output"]["count"], found["request_id"]) == (3, None)


def test_without_keys_a_flood_leaves_one_row_too(settings: Settings, models_dir: Path) -> None:
    with serving(settings, models_dir) as running:
        assert [flood(running, 50) for _ in range(3)] == [[422] * 50] * 3
    [row] = running.records("refusal")
    assert (row.principal, row.output["count"]) == ("loopback", 150)


def test_a_known_caller_is_recorded_one_by_one_up_to_a_bound(settings: Settings, models_dir: Path) -> None:
    key = create_key(settings, ["score"])
    with serving(settings, models_dir) as running:
        for number in range(SINGLE_RECORDS + 5):
            more: dict[str, Any] = {"headers": {**bearer(key), "X-Request-ID": f"r-{number}"}}
            assert running.score({}, **more).status_code == 422
    rows = running.records("refusal")
    assert [row.request_id for row in rows] == [*(f"r-{number}" for number in range(SINGLE_RECORDS)), None]
    assert rows[-1].output["count"] == 5


REFUSED: dict[int, Callable[[bytes], bytes]] = {  # from a valid score to a request that is refused with this status
    403: lambda score: score.replace(b"POST " + SCORE.encode(), b"GET /v1/sites"),
    404: lambda score: score.replace(b"POST " + SCORE.encode(), b"POST /no/such/address"),
    405: lambda score: score.replace(b"POST ", b"GET ", 1),
    422: lambda score: score,
    431: lambda score: score.replace(b"\r\n\r\n", b"\r\nX-Long: %s\r\n\r\n" % (b"x" * MAX_HEADER_BYTES)),
}


def with_key(request: bytes, key: str) -> bytes:
    return request.replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer %s\r\n\r\n" % key.encode(), 1)


@pytest.fixture
def every_refusal_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "BURST", 0)
    monkeypatch.setattr(security, "PER_SECOND", 1e-3)
    monkeypatch.setattr(security, "MIN_LONG_DELAY_SECONDS", 4.0)


def assert_still_waits(connection: socket.socket, status: int) -> None:
    """Nothing has arrived; then the refusal does."""
    connection.setblocking(False)
    with pytest.raises(BlockingIOError):
        connection.recv(1)
    connection.setblocking(True)
    assert connection.recv(65536).startswith(b"HTTP/1.1 %d" % status)


@pytest.mark.parametrize("status", [401, 404])
@pytest.mark.usefixtures("every_refusal_waits")
def test_anonymous_callers_are_throttled_and_others_are_not(settings: Settings, models_dir: Path, status: int) -> None:
    key = create_key(settings, ["score"])
    with serving(settings, models_dir) as running, closing(connect(running)) as anonymous:
        request = head(running, 2) + b"{}"
        anonymous.sendall(request if status == 401 else REFUSED[404](request))
        assert running.score(READING, SCORE, headers=bearer(key)).status_code == 200
        assert running.client.get("/health/live").status_code == 200
        assert_still_waits(anonymous, status)
        held = running.runtime.metrics.request_seconds["/v1/sites/{site}/score",]
        assert held._sum.get() < 4.0  # the wait is not the time that an answer takes


@pytest.mark.parametrize("status", REFUSED)
@pytest.mark.req("REQ-109")
@pytest.mark.usefixtures("every_refusal_waits")
def test_every_kind_of_refusal_of_a_caller_with_a_key_is_throttled_and_other_callers_are_not(
    settings: Settings, models_dir: Path, status: int
) -> None:
    flooding, other = create_key(settings, ["score"]), create_key(settings, ["score"])
    unlimited = replace(settings, rate_per_second=0)
    with serving(unlimited, models_dir) as running, closing(connect(running)) as refused:
        refused.sendall(with_key(REFUSED[status](head(running, 2) + b"{}"), flooding))
        assert running.score(READING, SCORE, headers=bearer(other)).status_code == 200
        assert running.score(READING, SCORE, headers=bearer(flooding)).status_code == 200  # only refusals wait
        assert_still_waits(refused, status)


@pytest.mark.req("REQ-106")
@pytest.mark.usefixtures("every_refusal_waits")
def test_the_refusals_of_a_caller_over_its_rate_are_throttled_and_other_callers_are_not(
    settings: Settings, models_dir: Path
) -> None:
    flooding, other = create_key(settings, ["score"]), create_key(settings, ["score"])
    slow = replace(settings, rate_per_second=1e-3, rate_burst=1)
    with serving(slow, models_dir) as running, closing(connect(running)) as over:
        assert running.score(READING, SCORE, headers=bearer(flooding)).status_code == 200
        over.sendall(with_key(head(running, 2) + b"{}", flooding))
        assert running.score(READING, SCORE, headers=bearer(other)).status_code == 200
        assert_still_waits(over, 429)


def test_a_caller_with_a_few_mistakes_does_not_wait(settings: Settings, models_dir: Path) -> None:
    """As many as a burst holds: the last response leaves without any delay."""
    key = create_key(settings, ["score"])
    with serving(settings, models_dir) as running:
        mistakes = [running.score({}, headers=bearer(key)).status_code for _ in range(10)]
        mistakes += [running.client.get("/v1/site", headers=bearer(key)).status_code for _ in range(10)]
        assert Counter(mistakes) == {422: 10, 404: 10}
        [due] = running.server.config.app.state.throttle._last.values()  # type: ignore[union-attr]
        assert due < running.loop.time()  # none waited


def test_every_caller_has_a_throttle_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "MAX_TRACKED", 3)
    found = Throttle()
    assert max(found.delay(1000.0, "flooding") for _ in range(1000)) > security.MIN_LONG_DELAY_SECONDS
    assert [found.delay(1000.0, other) for other in ("b", "c")] == [0.0, 0.0]
    assert found.delay(1001.5, "d") == 0.0
    assert found._last.keys() == {"flooding", "d"}  # the others are as good as new


def test_the_pace_of_refusals_is_even_after_a_burst_and_the_wait_is_bounded() -> None:
    found = Throttle()
    delays = [found.delay(1000.0, "nobody") for _ in range(security.BURST + 2 * security.PER_SECOND + 100)]
    assert delays[: security.BURST] == [0.0] * security.BURST
    assert delays[security.BURST] == pytest.approx(1 / security.PER_SECOND)
    assert delays[security.BURST + 99] == pytest.approx(100 / security.PER_SECOND)
    assert max(delays) == pytest.approx(security.MAX_DELAY_SECONDS)
    assert found.delay(1000.0 + 60, "nobody") == 0.0


def test_more_refusals_than_fit_into_the_longest_wait_do_not_leave_at_one_instant() -> None:
    found, callers = Throttle(), 640
    delays = Counter(round(found.delay(1000.0, "nobody"), 2) for _ in range(security.BURST + callers))
    del delays[0.0]
    assert max(delays) <= security.MAX_DELAY_SECONDS
    assert max(delays.values()) <= callers / security.PER_SECOND
