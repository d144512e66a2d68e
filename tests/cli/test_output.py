import io
import re

import pytest
from rich.console import Console

from app.cli import output


def test_a_bar_says_what_is_done_how_much_how_long_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(output, "errors", Console(file=screen, force_terminal=True, width=120, color_system=None))
    with output.progress_bar("loading the libraries") as report:
        report("all people, constant spread", 0.25)
    line = screen.getvalue()
    shown = r"all people, constant spread \S+ +25% \d:\d\d:\d\d passed, (-:--:--|\d:\d\d:\d\d) left"
    assert re.search(shown, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line)), line
