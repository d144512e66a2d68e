"""`normalcy` with an instrument of the campaign that changes nothing else.

TASKS_FILE=FILE python -m tests.campaigns.faults.instrumented tasks serve    counts the tasks of the event loop
CLOCK_FILE=FILE python -m tests.campaigns.faults.instrumented clock serve    shifts the clock by the seconds in FILE
COMPUTED_FILE=FILE … computed serve    writes down the request id of every score, before it is recorded
"""

import asyncio
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.campaigns.faults.mutants import MUTANTS
from tests.campaigns.service_process import NORMALCY

if TYPE_CHECKING:  # nothing of the service is imported before the clock is shifted
    from app.formats.response import Result
    from app.schemas.answers import ScoreResponse

TICKS = 20  # uvicorn's, of a tenth of a second


def tasks() -> None:
    from app.web.server import Server

    file, on_tick = Path(os.environ["TASKS_FILE"]), Server.on_tick
    unfinished = file.with_suffix(".part")

    async def count(self: Server, counter: int) -> bool:
        if counter % TICKS == 0:
            unfinished.write_text(str(len(asyncio.all_tasks())))
            unfinished.replace(file)  # a reader never sees it empty
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


def computed() -> None:
    from app.formats.response import score_response
    from app.services import score_measurements

    file = os.open(os.environ["COMPUTED_FILE"], os.O_WRONLY | os.O_APPEND)

    def note(request_id: str, result: "Result") -> "ScoreResponse":
        os.write(file, f"{request_id}\n".encode())
        return score_response(request_id, result)

    score_measurements.score_response = note  # type: ignore[attr-defined]


def program(instrument: str, given: tuple[str, ...] = NORMALCY) -> tuple[str, ...]:
    """`given`: of a broken build, which gets the instrument too."""
    broken = () if given == NORMALCY else given[-1:]
    return (sys.executable, "-m", "tests.campaigns.faults.instrumented", instrument, *broken)


if __name__ == "__main__":
    instrument, *words = sys.argv[1:]
    {"tasks": tasks, "clock": clock, "computed": computed}[instrument]()
    if words[0] in MUTANTS:
        MUTANTS[words.pop(0)].apply()
    from app.cli.main import main

    sys.argv = ["normalcy", *words]
    main()
