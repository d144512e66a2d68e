"""What the commands that visit the database share: one event loop, the settings, and who is asking."""

import asyncio
import os
import pwd
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from app.settings import Settings, load_settings

if TYPE_CHECKING:
    from app.runtime.credentials import Caller

T = TypeVar("T")


def run(work: Callable[[Settings], Coroutine[Any, Any, T]]) -> T:
    """The work of a command, with the settings of the environment."""
    from app.observability import configure_logging

    settings = load_settings(os.environ)
    configure_logging("error", sys.stderr)  # a command fails with a sentence, not with a log
    return asyncio.run(work(settings))


def principal() -> str:
    """Who the audit names: the user whom the operating system knows, whatever the environment says."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # containers run under numbers without names
        user = str(os.getuid())
    return f"command-line:{user}"


def caller(settings: Settings, command: str) -> "Caller":
    """The command as the audit names it; what it records must be durable within the budget from now on."""
    import uuid_utils

    from app.runtime.credentials import Caller

    deadline = asyncio.get_running_loop().time() + settings.audit_budget_seconds
    return Caller(principal(), str(uuid_utils.uuid7()), f"normalcy {command}", deadline)


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _moment(text: str) -> str:
    from app.clock import timestamp

    when = datetime.fromisoformat(text)
    return timestamp(when if when.tzinfo else when.replace(tzinfo=UTC))


FromOption = Annotated[
    str | None,
    typer.Option("--from", parser=_moment, metavar="TIME", help="ISO 8601, in UTC unless it says otherwise."),
]
ToOption = Annotated[str | None, typer.Option("--to", parser=_moment, metavar="TIME", help="Before this moment.")]
