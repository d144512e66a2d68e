"""What the commands share: settings and event loop, who is calling, common options, output for people and programs."""

import asyncio
import json
import os
import pwd
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from app.clock import iso_timestamp
from app.settings import Settings, load_settings

if TYPE_CHECKING:
    from app.runtime.credentials import Caller

T = TypeVar("T")
Report = Callable[[str, float], None]  # the current step, and the share of all work that is done (0 to 1)

DEFAULT_STORE = Path("models_store")


def _model_store(context: typer.Context, parameter: typer.CallbackParam, given: Path) -> Path:
    """Without the option, the one of the settings: of the environment, or of the file that NORMALCY_ENV_FILE names."""
    source = context.get_parameter_source(parameter.name or "")
    return given if source and source.name == "COMMANDLINE" else load_settings(os.environ).models_dir


def _time(text: str) -> str:
    try:
        return iso_timestamp(text)
    except ValueError:
        raise typer.BadParameter("A time in ISO 8601 is needed here, such as 2026-11-15T10:30:00Z.") from None


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ModelsOption = Annotated[
    Path,
    typer.Option("--models", envvar="NORMALCY_MODELS_DIR", callback=_model_store, help="The model store."),
]
FromOption = Annotated[
    str | None,
    typer.Option("--from", parser=_time, metavar="TIME", help="From this time on (ISO 8601; UTC by default)."),
]
ToOption = Annotated[
    str | None,
    typer.Option("--to", parser=_time, metavar="TIME", help="Before this time (ISO 8601; UTC by default)."),
]

errors = Console(stderr=True, highlight=False, soft_wrap=True)


def run(work: Callable[[Settings], Coroutine[Any, Any, T]]) -> T:
    """Run the asynchronous part of a command with the settings of the environment."""
    from app.observability import configure_logging

    settings = load_settings(os.environ)
    configure_logging("error", sys.stderr)  # a command fails with a sentence, not with a log
    return asyncio.run(work(settings))


def principal() -> str:
    """The name for the audit: the user as the operating system knows it, whatever the environment says."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # containers run as users without a name
        user = str(os.getuid())
    return f"command-line:{user}"


def caller(command: str) -> "Caller":
    """The caller of a use case. What it records must be durable within `COMMAND_SECONDS` from now on."""
    import uuid_utils

    from app.runtime.command import COMMAND_SECONDS
    from app.runtime.credentials import Caller

    deadline = asyncio.get_running_loop().time() + COMMAND_SECONDS
    return Caller(principal(), str(uuid_utils.uuid7()), f"normalcy {command}", deadline)


def printable(text: str, allowed: str = "") -> str:
    """Everything but printable and `allowed` characters escaped, as in JSON.

    What somebody wrote into the database must not control the terminal, nor look like another line of the output.
    """
    return "".join(c if c.isprintable() or c in allowed else json.dumps(c)[1:-1] for c in text)


def say(line: str) -> None:
    """Print a line on standard output."""
    Console(highlight=False, soft_wrap=True).print(printable(line), markup=False)


def warn(line: str) -> None:
    """Print a line on standard error."""
    errors.print(printable(line), markup=False)


def say_json(value: Any) -> None:
    """Print JSON for people, in colours if standard output is a terminal."""
    Console().print(JSONHighlighter()(_json(value)), soft_wrap=True)


def show(value: Any, as_json: bool, print_text: Callable[[], None]) -> None:
    """Print the result of a command: as JSON, or as text by calling `print_text`."""
    if as_json:
        typer.echo(_json(value))
    else:
        print_text()


def _json(value: Any) -> str:
    return printable(msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), allowed="\n")


def counted(number: int, noun: str) -> str:
    """1 record, 2 records"""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """A bar on standard error with the time left; nothing if standard error is not a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        _TimeLeft(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(title, total=1.0, has_moved=False)

        def report(step: str, share: float) -> None:
            has_moved = bar.tasks[0].description == step
            bar.update(task, description=step, completed=share, has_moved=has_moved)

        yield report


@contextmanager
def row_progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """The same for a table: rows done of all rows, rows a second, and the time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), _Rows(), TimeElapsedColumn(), _TimeLeft())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(title, total=None, has_moved=False)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, has_moved=True)

        yield report


class _Rows(ProgressColumn):
    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text("reading")
        rate = f", {task.speed:,.0f} rows/s" if task.speed else ""
        return Text(f"{task.completed:,.0f} of {task.total:,.0f} rows{rate}")


class _TimeLeft(TimeRemainingColumn):
    """Shown once a step makes progress; the steps before it say nothing about its duration."""

    max_refresh = 0.0  # show progress at once

    def render(self, task: Task) -> Text:
        if not task.fields["has_moved"]:
            return Text("elapsed")
        return Text("elapsed, ") + super().render(task) + Text(" left")
