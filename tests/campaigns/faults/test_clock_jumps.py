"""The row of clock jumps: it holds only if the clock of the service really jumped."""

from pathlib import Path

import pytest

from tests.campaigns.faults import clock_jumps
from tests.campaigns.faults.__main__ import main
from tests.campaigns.faults.compare import Tally
from tests.campaigns.faults.results import Result, read_all
from tests.campaigns.service_process import NORMALCY, Verdict

GOOD = Tally(cycles=1, acknowledged=300, returns=[1.0])


def one_cycle(results: Path) -> Result:
    main(["--only", "F12", "--cycles", "1", "--database", "SQLite", "--results", str(results)])
    [found] = read_all(results).values()
    return found


def test_the_clock_jumps(tmp_path: Path) -> None:
    assert one_cycle(tmp_path).unmet == []


def test_a_clock_that_does_not_jump_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_jumps, "program", lambda *_: NORMALCY)
    assert one_cycle(tmp_path).unmet == ["the fault had no effect"]


def test_midnight_is_no_jump() -> None:
    dates = {"2026-11-19", "2026-11-20", "2026-12-20"}
    assert clock_jumps.judge(GOOD, Verdict(0, 2, 0), dates).unmet == []
    assert clock_jumps.judge(GOOD, Verdict(0, 2, 0), dates - {"2026-12-20"}).unmet == ["the fault had no effect"]
