"""The chapters beside the UCI sets: clinical, density, growth, slip. The one place that knows their modules."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from app.benchmark.paper.code_digest import code_digest
from app.benchmark.paper.origin import origin

# In the order of the report. Module `x` has run() -> plain values, module `x_chapter` has render(values, folder of
# figures) -> Markdown and headline(values) -> a sentence; a change of the latter does not make the former run again.
CHAPTERS = ("clinical", "density", "growth", "slip")


@dataclass(frozen=True, slots=True)
class Chapter:
    name: str
    origin: dict[str, str]
    result: dict[str, Any]


def chapter(name: str, folder: Path, report: Callable[[str], None]) -> Chapter:
    """Kept like a task: as long as its code stays the same it is not run again."""
    module = f"app.benchmark.paper.{name}"
    path = folder / f"{name}-{code_digest(module)[:16]}.json"
    if not path.is_file():
        report(f"running: {name}")
        made = Chapter(name, origin(), import_module(module).run())
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        partial.write_bytes(msgspec.json.encode(made))
        os.replace(partial, path)
    return msgspec.json.decode(path.read_bytes(), type=Chapter)


def headline(one: Chapter) -> str:
    """A sentence for the top of the report."""
    say: Callable[[dict[str, Any]], str] = import_module(f"app.benchmark.paper.{one.name}_chapter").headline
    return say(one.result)


def rendered(one: Chapter, figures: Path) -> str:
    render: Callable[[dict[str, Any], Path], str] = import_module(f"app.benchmark.paper.{one.name}_chapter").render
    return render(one.result, figures)
