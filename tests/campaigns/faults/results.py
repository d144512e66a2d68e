"""The results of the campaign: one JSON file for each row and database, in a folder."""

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.benchmark.report_header import processor
from app.build_info import source_commit
from app.clock import timestamp, utc_now
from tests.campaigns.faults.row import Database, Figure, Finding, Row

FOLDER = Path("build/faults")
REPORTED = "faults.json"  # beside the report


@dataclass(frozen=True)
class Result:
    row: str  # the slug
    database: Database
    seed: int
    cycles: int  # that were really run
    figures: dict[str, Figure]
    unmet: list[str]
    late: list[str]
    began: str
    ended: str
    commit: str
    python: str
    machine: str
    load: float  # average of the machine over the last minute, when it ended; the campaign's own included

    @property
    def held(self) -> bool:
        return not self.unmet and not self.late


def as_result(row: Row, database: Database, seed: int, finding: Finding, began: str) -> Result:
    return Result(
        row.slug,
        database,
        seed,
        finding.cycles,
        dict(finding.figures),
        list(finding.unmet),
        list(finding.late),
        began,
        timestamp(utc_now()),
        source_commit(),
        platform.python_version(),
        f"{processor()}, {os.cpu_count()} cores",
        round(os.getloadavg()[0], 1),
    )


def path_of(folder: Path, slug: str, database: str) -> Path:
    return folder / f"{slug}-{database.lower()}.json"


def save(folder: Path, result: Result) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(folder, result.row, result.database)
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    unfinished.replace(path)


def read_all(folder: Path) -> dict[tuple[str, str], Result]:
    """By slug and database."""
    return _by_row(msgspec.json.decode(path.read_bytes(), type=Result) for path in sorted(folder.glob("*.json")))


def read_reported(docs: Path) -> dict[tuple[str, str], Result]:
    """Those of the report as it is."""
    path = docs / REPORTED
    return _by_row(msgspec.json.decode(path.read_bytes(), type=list[Result])) if path.exists() else {}


def _by_row(results: Iterable[Result]) -> dict[tuple[str, str], Result]:
    return {(result.row, result.database): result for result in results}
