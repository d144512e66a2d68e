"""How every command speaks: tables and sentences for people, one JSON document for machines, a bar for long work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines.")]
Report = Callable[[str, float], None]  # what is being done, and how much of all the work is behind us (0..1)

errors = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """A line for people, on standard output."""
    Console(highlight=False, soft_wrap=True).print(text, markup=False)


def show(value: Any, as_json: bool, people: Callable[[], None]) -> None:
    """The one switch between the two audiences."""
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        people()


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """A bar on standard error with the time left; silent where no terminal listens."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        _TimeLeft(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(title, total=1.0, has_moved=False)

        def report(what: str, share: float) -> None:
            has_moved = bar.tasks[0].description == what
            bar.update(task, description=what, completed=share, has_moved=has_moved)

        yield report


class _TimeLeft(TimeRemainingColumn):
    """Nothing while a stage has not moved: how long it takes, the ones before it do not tell."""

    max_refresh = 0.0  # a stage that moves is shown at once

    def render(self, task: Task) -> Text:
        if not task.fields["has_moved"]:
            return Text("passed")
        return Text("passed, ") + super().render(task) + Text(" left")
