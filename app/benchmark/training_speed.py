"""How long training takes: for a hospital's cohort, and against the paper's optimiser."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from app.clock import utc_now
from app.domain.query import Convention
from app.formats.markdown import table
from app.maths.gp.posterior import Scaling
from app.maths.moments import Array
from app.services.train import TrainingPlan, train
from app.training.fit import CONSTANT_SPREAD, Stages, fit
from app.training.model import starting_points
from app.training.recipe import Recipe
from app.training.table_checks import accepted_table


@dataclass(frozen=True, slots=True)
class Timed:
    """Processor time does not count what other work took from the machine. TensorFlow is held to one thread."""

    what: str
    wall_seconds: float
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class TrainingTime:
    people: int
    fit: Timed
    train: Timed


def measure_training(path: Path, diameter_column: str, seed: int, report: Callable[[str, float], None]) -> TrainingTime:
    """One fit of a cohort, and the whole training with its held-out folds. Loading the libraries does not count."""
    people, _ = accepted_table(path, diameter_column)
    plan = TrainingPlan("SoV", "0.0.0", "measured", "", Convention(), Recipe(), seed)
    once = _timed("one fit", lambda: fit(people.covariates("log"), people.diameter_mm, plan.recipe, seed))
    whole = _timed(f"fit and {plan.folds} folds", lambda: train(people, plan, utc_now(), report))
    return TrainingTime(len(people), once, whole)


def render_training(found: TrainingTime) -> list[str]:
    rows = ((one.what, f"{one.wall_seconds:.1f}", f"{one.processor_seconds:.1f}") for one in (found.fit, found.train))
    return [f"{found.people} people, tracing included.", "", *table(("what", "wall s", "processor s"), rows)]


def _timed(what: str, work: Callable[[], object]) -> Timed:
    wall, processor = perf_counter(), process_time()
    work()
    return Timed(what, perf_counter() - wall, process_time() - processor)


@dataclass(frozen=True, slots=True)
class Reached:
    """An objective and when it was reached. Processor time leaves out what other work took from the machine."""

    objective: float
    wall_seconds: float
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class Race:
    people: int
    covariates: int
    inducing_points: int
    seed: int
    priors: bool  # False: the objective is the plain ELBO
    paper_steps: int
    paper: Reached  # after all its steps
    staged: Reached  # after all stages
    overtaking: Reached | None  # the first iteration at or above the paper's end; None if there was none


def measure_optimisers(x: Array, y: Array, steps: int, seed: int, priors: bool = True) -> Race:
    """How long the staged L-BFGS takes to the objective that the paper's optimiser ends at.

    From raw covariates x [N, D] and targets y [N]. Both maximise the same function of the same model, ELBO plus log
    prior or the plain ELBO as in the paper, from the same inducing points, with the same closed-form data term on one
    thread. Both clocks run from the bare arrays on: building, tracing and compiling count.
    """
    by_paper = Recipe(optimiser="paper", paper_steps=steps, priors=priors, start_log_sd=math.log(0.5))
    by_stages = Recipe(priors=priors)
    people, covariates = x.shape
    points = min(by_paper.inducing_points(people), len(np.unique(x, axis=0)))
    paper = _path(x, y, by_paper, seed)[-1]
    path = _path(x, y, by_stages, seed)
    overtaking = next((reached for reached in path if reached.objective >= paper.objective), None)
    return Race(people, covariates, points, seed, priors, steps, paper, path[-1], overtaking)


def render_optimisers(race: Race) -> list[str]:
    """Markdown lines."""
    rows = [(f"natural gradient and Adam, {race.paper_steps} steps", race.paper), ("staged L-BFGS", race.staged)]
    if race.overtaking:
        rows.append(("staged L-BFGS, at the paper's end", race.overtaking))
    what = "ELBO + log prior" if race.priors else "ELBO"
    head = ("optimiser", what, "wall s", "processor s", "of the paper's, wall", "of the paper's, processor")
    return [
        f"{race.people} rows, {race.covariates} covariates, {race.inducing_points} inducing points; seed {race.seed}",
        "",
        *table(head, (_row(name, reached, race.paper) for name, reached in rows)),
    ]


def _row(name: str, reached: Reached, paper: Reached) -> list[str]:
    wall = paper.wall_seconds / reached.wall_seconds
    processor = paper.processor_seconds / reached.processor_seconds
    seconds = (f"{reached.wall_seconds:.1f}", f"{reached.processor_seconds:.1f}")
    return [name, f"{reached.objective:.1f}", *seconds, f"1/{wall:.0f}", f"1/{processor:.0f}"]


def _path(x: Array, y: Array, recipe: Recipe, seed: int) -> list[Reached]:
    """Objective against time of the model whose f2 varies; the stage before has that of another model."""
    wall, processor = perf_counter(), process_time()
    path: list[Reached] = []

    def watch(stage: str, fraction: float, objective: float) -> None:
        if stage != CONSTANT_SPREAD:
            path.append(Reached(objective, perf_counter() - wall, process_time() - processor))

    scaling = Scaling.of(x, y)
    contexts = scaling.standardise(x)
    rng = np.random.default_rng(seed)
    Z = starting_points(contexts, recipe.inducing_points(len(x)), rng)
    Stages(recipe, contexts, scaling.standardise_y(y), rng, watch).train(Z)
    return path
