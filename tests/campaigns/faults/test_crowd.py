"""What F10 judges: an attack in every cycle, the worst cycle, and processes that are where the page says."""

import os
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from dataclasses import replace
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.campaigns.faults.crowd import OF_MANY_CALLERS, OF_ONE_CALLER, Bounds, Cycle, judge, pinned, result
from tests.campaigns.faults.row import Context
from tests.campaigns.faults.target import started
from tests.campaigns.load_client import MEASUREMENTS, first_measurement
from tests.campaigns.servers import SERVER_CPU, pin

HONEST = {"sent": 600.0, "served": 600.0, "p99": 0.02, "slowest": 0.1}
FLOOD = {"answers": 1000.0, "seconds": 20.0, "errors": 900.0, "p50_ms": 1500.0, "p99_ms": 2000.0}
GOOD = Cycle(HONEST, HONEST, FLOOD, 160.0)
SOCKETS = {"opened": 2000.0, "closed": 1000.0, "most": 1000.0}
SLOW = replace(GOOD, attack=SOCKETS)


@pytest.mark.parametrize(
    ("first", "named"),
    [
        (replace(GOOD, attack=FLOOD | {"answers": 0.0}), "no attack in 1 of 2 cycles"),
        (replace(SLOW, attack=SOCKETS | {"opened": 0.0}), "no attack in 1 of 2 cycles"),
        (replace(SLOW, attack=SOCKETS | {"closed": 0.0}), "no slow socket was closed"),
    ],
)
def test_an_attack_that_dies_is_noticed_in_any_cycle(first: Cycle, named: str) -> None:
    good = SLOW if "opened" in first.attack else GOOD
    assert judge([good, good], 150.0, OF_ONE_CALLER).unmet == []
    assert judge([first, good], 150.0, OF_ONE_CALLER).unmet == [named]
    assert judge([], 0.0, OF_ONE_CALLER).unmet == ["no cycle was run"]


@pytest.mark.parametrize(
    ("beside", "bounds", "late"),
    [
        ({"p99": 0.061}, OF_ONE_CALLER, ["p99 slower by 3.0"]),
        ({"p99": 2.0, "slowest": 2.9}, OF_MANY_CALLERS, []),
        ({"p99": 2.0, "slowest": 3.1}, OF_MANY_CALLERS, ["slowest answer 3.10 s"]),
        ({"served": 569.0}, OF_MANY_CALLERS, ["served 94.8%"]),
    ],
)
def test_the_worst_cycle_counts(beside: dict[str, float], bounds: Bounds, late: list[str]) -> None:
    found = judge([GOOD, replace(GOOD, beside=HONEST | beside), GOOD], 150.0, bounds)
    assert (found.unmet, found.late) == ([], late)


def test_memory_that_grows_in_every_cycle_is_added_up() -> None:
    growing = [replace(GOOD, peak_mb=peak) for peak in (180.0, 199.0, 201.0)]
    assert judge(growing[:2], 150.0, OF_ONE_CALLER).late == []
    assert judge(growing, 150.0, OF_ONE_CALLER).late == ["memory +51 MB"]


def test_the_rate_of_an_attack_is_reported() -> None:
    figures = judge([GOOD, replace(GOOD, attack=FLOOD | {"answers": 3000.0})], 150.0, OF_ONE_CALLER).figures
    assert (figures["attack: answers"], figures["attack: answers a second"]) == ("4,000", "100")


@pytest.mark.anyio
@pytest.mark.parametrize("program", ["", "print('{}'); raise SystemExit(1)", "import os; print('{}'); os.abort()"])
async def test_a_client_that_fails_has_no_result(program: str) -> None:
    process = await create_subprocess_exec(sys.executable, "-c", program, stdout=PIPE, stderr=PIPE)
    with pytest.raises(RuntimeError, match=r"a client ended with"):
        await result(process)


@pytest.mark.anyio
@pytest.mark.skipif(not pin(SERVER_CPU), reason="needs taskset")
async def test_every_thread_of_the_service_is_pinned(tmp_path: Path) -> None:
    async with started(pinned(Context("F10", "SQLite", 7, 1, tmp_path))) as target:
        threads = psutil.Process(target.service.process.pid).threads()
        assert len(threads) > 1
        assert all(os.sched_getaffinity(thread.id) == {SERVER_CPU} for thread in threads)


@pytest.mark.parametrize("connections", [1, 64, 640, 1000])
def test_connections_are_spread_over_all_measurements(connections: int) -> None:
    first = [first_measurement(number, connections) for number in range(connections)]
    assert len(set(first)) == min(connections, MEASUREMENTS)
    assert max(first) < MEASUREMENTS
