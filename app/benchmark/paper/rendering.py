"""What every chapter is written with: prose from templates, marks against the paper's numbers, a page for a figure.

The prose is in `templates/`, a file for each chapter. A line `<!-- name -->` begins a part; `$name` is a placeholder.
The lines of a paragraph are joined, so that a template can be wrapped and a report need not be.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from string import Template

import matplotlib as mpl
from matplotlib.figure import Figure

from app.benchmark.paper.study import Spread
from app.formats.figures import STYLE, render
from app.formats.markdown import table

TEMPLATES = Path(__file__).parent / "templates"
PART = re.compile(r"^<!-- (\w+) -->\n", re.MULTILINE)
WRAPPED = re.compile(r"(?<=\S)\n(?=[^\s|#!-])|(?<=\S)\n  (?=\S)")  # within a paragraph, or within a point of a list

BETTER, EQUAL, WORSE = "better", "equal", "worse"
ROUNDING = 1e-12  # 1.0 - 0.99 is a little more than 0.01
# How often `mark` finds a difference between two methods that are the same, with five normal values on either side.
FALSE_MARKS = 0.105
# The same where the published number comes without a standard deviation.
FALSE_MARKS_ALONE = 0.188


class Prose:
    """The parts of one template: `prose("part", name=value, ...)` is the part with its placeholders filled."""

    def __init__(self, name: str) -> None:
        _, *found = PART.split((TEMPLATES / f"{name}.md").read_text(encoding="utf-8"))
        names, texts = found[::2], found[1::2]
        self._parts = {part: Template(WRAPPED.sub(" ", text.strip())) for part, text in zip(names, texts, strict=True)}

    def __call__(self, part: str, /, **values: object) -> str:
        """Raises ValueError for a value that the part has no place for, KeyError for one that is missing."""
        template = self._parts[part]
        if unused := values.keys() - set(template.get_identifiers()):
            raise ValueError(f"The part {part} has no place for {', '.join(sorted(unused))}.")
        return template.substitute(values)


def table_text(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(table(head, rows)).rstrip("\n")


def lines(parts: Iterable[str]) -> str:
    """One line each, also when rendered."""
    return "\n".join(f"{part}  " for part in parts)


def paragraphs(parts: Iterable[str]) -> str:
    """Those that are not empty."""
    return "\n\n".join(part for part in parts if part)


def pair(values: Spread) -> str:
    """0.961 ± 0.005, or the value alone where there is one injection."""
    return f"{values.mean:.3f} ± {values.sd:.3f}" if len(values.values) > 1 else f"{values.mean:.3f}"


def difference(values: Spread, of_mean: bool = True) -> str:
    """+0.012 ± 0.005: the standard error of the mean, or the standard deviation of the values. No sign on a zero."""
    mean, error = values.mean, values.standard_error if of_mean else values.sd
    return f"{mean:+.3f} ± {error:.3f}" if abs(mean) >= 0.0005 else f"0.000 ± {error:.3f}"


def listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def mark(ours: Spread, published: float, published_sd: float = 0.0) -> str:
    """Equal: the means differ by at most one standard deviation, the larger of the two."""
    difference = ours.mean - published
    if abs(difference) <= max(ours.sd, published_sd, 0.005) + ROUNDING:  # the paper prints two decimals
        return EQUAL
    return BETTER if difference > 0.0 else WORSE


def smaller_mark(ours: float, published: float) -> str:
    """For changes, which have no standard deviation in the paper: less is better, at its two decimals."""
    difference = round(ours, 2) - published
    return EQUAL if abs(difference) < 0.005 else (BETTER if difference < 0.0 else WORSE)


def reaches(ours: float, published: float) -> bool:
    """At least the published number at its two decimals."""
    return ours >= published - 0.005 - ROUNDING


def counted(marks: Iterable[str]) -> str:
    found = list(marks)
    return ", ".join(f"{found.count(kind)} {kind}" for kind in (BETTER, EQUAL, WORSE)) + f" (of {len(found)})"


@contextmanager
def page(path: Path, width: float, height: float) -> Iterator[Figure]:
    """A figure of so many inches, saved when the block ends: readable in grey, the same bytes every time.

    The ending of the path says the format, .svg or .png.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        path.write_bytes(render(figure, path.suffix.removeprefix(".")))
