import io
import re

import pytest
from rich.console import Console

from app.cli import common


def shown(monkeypatch: pytest.MonkeyPatch, *reports: tuple[str, float]) -> str:
    """The last line that a bar wrote."""
    screen = io.StringIO()
    monkeypatch.setattr(common, "errors", Console(file=screen, force_terminal=True, width=120, color_system=None))
    with common.progress_bar("loading the libraries") as report:
        for what, share in reports:
            report(what, share)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())


def test_a_bar_says_what_is_done_how_much_how_long_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    line = shown(monkeypatch, ("all people, constant spread", 0.2), ("all people, constant spread", 0.25))
    expected = r"all people, constant spread \S+ +25% \d:\d\d:\d\d elapsed, (-:--:--|\d:\d\d:\d\d) left"
    assert re.search(expected, line), line


def test_of_a_stage_that_has_not_moved_no_time_left_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    line = shown(monkeypatch, ("fold 5 of 5", 0.5), ("fold 5 of 5", 0.7), ("checking the gates", 0.7))
    assert re.search(r"checking the gates \S+ +70% \d:\d\d:\d\d elapsed", line), line
    assert "left" not in line.rpartition("checking the gates")[2]
