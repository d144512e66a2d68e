"""`normalcy` with an instrument of the campaign that changes nothing else.

TASKS_FILE=FILE python -m tests.campaigns.faults.instrumented tasks serve    counts the tasks of the event loop
CLOCK_FILE=FILE python -m tests.campaigns.faults.instrumented clock serve    shifts the clock by the seconds in FILE
"""

import asyncio
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

TICKS = 20  # uvicorn's, of a tenth of a second


def tasks() -> None:
    from app.web.server import Server

    file, on_tick = Path(os.environ["TASKS_FILE"]), Server.on_tick

    async def count(self: Server, counter: int) -> bool:
        if counter % TICKS == 0:
            file.write_text(str(len(asyncio.all_tasks())))
        return await on_tick(self, counter)

    Server.on_tick = count  # type: ignore[method-assign]


def clock() -> None:
    from app import clock

    file = Path(os.environ["CLOCK_FILE"])

    def shifted() -> datetime:
        seconds = 0.0
        with suppress(OSError, ValueError):  # it is being written
            seconds = float(file.read_text())
        return datetime.now(UTC) + timedelta(seconds=seconds)

    clock.utc_now = shifted  # before any other module takes it from there


def program(instrument: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.campaigns.faults.instrumented", instrument)


if __name__ == "__main__":
    {"tasks": tasks, "clock": clock}[sys.argv[1]]()
    from app.cli.main import main

    sys.argv = ["normalcy", *sys.argv[2:]]
    main()
