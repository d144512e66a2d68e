"""How long a hospital waits: one fit of a cohort, and the whole training with its held-out folds."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time

from app.domain.convention import Convention
from app.services.train import TrainingPlan, train
from app.training.fit import fit
from app.training.recipe import Recipe
from app.training.table_checks import accepted_table


@dataclass(frozen=True, slots=True)
class Clocked:
    """Processor time does not count what other work took from the machine. TensorFlow is held to one thread."""

    what: str
    wall_seconds: float
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class TrainingTime:
    people: int
    fit: Clocked
    train: Clocked


def measure(path: Path, diameter_column: str, seed: int, report: Callable[[str, float], None]) -> TrainingTime:
    """On a table of people; the libraries are loaded already and do not count."""
    table, _ = accepted_table(path, diameter_column)
    plan = TrainingPlan("SoV", "0.0.0", "measured", "", Convention(), Recipe(), seed)
    once = _clock("one fit", lambda: fit(table.covariates("log"), table.diameter_mm, plan.recipe, seed))
    whole = _clock(f"fit and {plan.folds} folds", lambda: train(table, plan, datetime.now(UTC), report))
    return TrainingTime(len(table), once, whole)


def render(time: TrainingTime) -> list[str]:
    rows = (f"| {row.what} | {row.wall_seconds:.1f} | {row.processor_seconds:.1f} |" for row in (time.fit, time.train))
    return [f"{time.people} people, tracing included.", "", "| what | wall s | processor s |", "|---|---|---|", *rows]


def _clock(what: str, work: Callable[[], object]) -> Clocked:
    wall, processor = perf_counter(), process_time()
    work()
    return Clocked(what, perf_counter() - wall, process_time() - processor)
