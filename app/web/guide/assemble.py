"""The guide as one Markdown text."""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files

from app.formats.summaries import INTENDED_USE
from app.web.door import Door
from app.web.guide import tables

CHAPTERS = (
    "welcome",
    "first-call",
    "answer",
    "reliability",
    "problems",
    "keys",
    "front-ends",
    "audit",
    "models",
    "addresses",
    "settings",
    "operation",
    "command-line",
)
PLACEHOLDER = re.compile(r"^\{\{ (\w+) \}\}$", re.MULTILINE)

FILLINGS: Mapping[str, Callable[[Sequence[Door]], str]] = {
    "intended_use": lambda _: f"> {INTENDED_USE}",
    "problems": lambda _: tables.problems(),
    "faults": lambda _: tables.faults(),
    "reasons": lambda _: tables.reasons(),
    "limits": lambda _: tables.limits(),
    "settings": lambda _: tables.settings(),
    "metrics": lambda _: tables.metrics(),
    "scopes": tables.scopes,
    "doors": tables.doors,
}


def guide(doors: Sequence[Door]) -> str:
    """All chapters in their order, every placeholder filled; one that nobody fills is a defect and raises KeyError."""
    return PLACEHOLDER.sub(lambda found: FILLINGS[found[1]](doors), "\n".join(map(chapter, CHAPTERS)))


def chapter(name: str) -> str:
    """As it was written."""
    return (files("app.web.guide") / f"{name}.md").read_text("utf-8")
