"""What a row of the campaign is: a fault, what it requires, and the function that runs it on one database."""

import random
import re
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.campaigns.service_process import NORMALCY
from tests.postgres import PrivateServer

Database = Literal["SQLite", "PostgreSQL", "both"]  # both: a row that starts other commands
BOTH: tuple[Database, ...] = ("SQLite", "PostgreSQL")
POSTGRESQL: tuple[Database, ...] = ("PostgreSQL",)
SQLITE: tuple[Database, ...] = ("SQLite",)

Figure = int | float | str
SHOWN = 100  # steps of the progress


@dataclass(frozen=True)
class Finding:
    """What one row saw on one database."""

    cycles: int  # that were really run
    figures: Mapping[str, Figure]  # in the order in which they are shown; times and sizes as text with their unit
    unmet: list[str] = field(default_factory=list)  # each requirement that did not hold, with its figure
    late: list[str] = field(default_factory=list)  # the same of times and sizes, which a busy machine can change


@dataclass(frozen=True)
class Context:
    """Everything that one run of a row needs."""

    name: str
    database: Database
    seed: int
    cycles: int
    folder: Path  # empty, gone afterwards
    server: PrivateServer | None = None  # where the database is PostgreSQL
    program: tuple[str, ...] = NORMALCY
    owner_sql: str = ""  # of a mutant: run by the owner of the database before the service starts
    ends_at: float = float("inf")  # monotonic: no cycle begins later

    @property
    def postgres(self) -> PrivateServer:
        if self.server is None:
            raise ValueError("this row needs a private PostgreSQL")
        return self.server

    def rng(self) -> random.Random:
        return random.Random(f"{self.seed} {self.name} {self.database}")  # noqa: S311 - no secret

    def each_cycle(self, step: int = 1) -> Iterator[int]:
        """The numbers of the cycles, or of every first of `step`, with the progress on standard error, until the time
        is over."""
        for number in range(0, self.cycles, step):
            if time.monotonic() > self.ends_at:
                break
            if step > 1 or number % max(self.cycles // SHOWN, 1) == 0:
                sys.stderr.write(f"\r{self.name}, {self.database}: {number + 1:,} of {self.cycles:,}  ")
                sys.stderr.flush()
            yield number
        sys.stderr.write("\n")


@dataclass(frozen=True)
class Row:
    number: str  # F1 to F18
    name: str
    procedure: str
    required: str
    run: Callable[[Context], Coroutine[Any, Any, Finding]]
    cycles: int  # by default, and what the requirement asks for
    databases: tuple[Database, ...] = BOTH
    unit: str = "cycles"

    @property
    def slug(self) -> str:
        """Also the name of its results: F3-black-hole."""
        return f"{self.number}-{re.sub(r'[^a-z0-9]+', '-', self.name.lower()).strip('-')}"

    def is_chosen_by(self, words: list[str]) -> bool:
        """F3 chooses all rows of this number, F3-black-hole this one alone. No word chooses all."""
        return not words or self.number in words or self.slug in words
