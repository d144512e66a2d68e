"""What the reports of all campaigns share."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from app.benchmark.report_header import report_header

BUSY_LOAD = 1.0  # load average before the campaign adds its own; it remembers what ended a minute ago


def opening(title: str, command: str, load_average: tuple[float, float], busy_warning: str = "") -> list[str]:
    """Title, report header, load of the machine, and a warning if other work was running."""
    before, after = load_average
    return [
        f"# {title}",
        "",
        *report_header(command),
        f"Load average of the machine before and after: {before:.1f} and {after:.1f}.",
        "",
        *([busy_warning, ""] if busy_warning and before > BUSY_LOAD else []),
    ]


def command_line(module: str, arguments: Sequence[str], out: Path) -> str:
    """As it was typed, without the path of the report."""
    words = [word for word in arguments if word not in ("--out", str(out))]
    return " ".join([f"python -m {module}", *words])


def spread(values: Sequence[float], pattern: str) -> str:
    """Median (lowest to highest)."""
    middle, low, high = (format(value, pattern) for value in (median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})"


def write_report(out: Path, lines: Sequence[str]) -> None:
    out.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def wrapped(text: str) -> list[str]:
    """A paragraph in lines."""
    return textwrap.wrap(text, 119, break_on_hyphens=False)
