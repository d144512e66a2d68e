"""How long the staged L-BFGS takes to the objective that the paper's optimiser ends at.

Both maximise the same function of the same model, ELBO plus log prior or the plain ELBO as in the paper, from the
same inducing points, with the same closed-form data term on one thread. Both clocks run from the bare arrays on:
building, tracing and compiling count.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from app.maths.gp.scaling import Scaling
from app.maths.moments import Array
from app.training.fit import CONSTANT_SPREAD, Stages
from app.training.model import starting_points
from app.training.recipe import Recipe


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


def measure(x: Array, y: Array, steps: int, seed: int, priors: bool = True) -> Race:
    """From raw covariates x [N, D] and targets y [N]."""
    by_paper = Recipe(optimiser="paper", paper_steps=steps, priors=priors, start_log_sd=math.log(0.5))
    by_stages = Recipe(priors=priors)
    people, covariates = x.shape
    points = min(by_paper.inducing_points(people), len(np.unique(x, axis=0)))
    paper = _path(x, y, by_paper, seed)[-1]
    path = _path(x, y, by_stages, seed)
    overtaking = next((reached for reached in path if reached.objective >= paper.objective), None)
    return Race(people, covariates, points, seed, priors, steps, paper, path[-1], overtaking)


def render(race: Race) -> list[str]:
    """Markdown lines."""
    rows = [(f"natural gradient and Adam, {race.paper_steps} steps", race.paper), ("staged L-BFGS", race.staged)]
    if race.overtaking:
        rows.append(("staged L-BFGS, at the paper's end", race.overtaking))
    what = "ELBO + log prior" if race.priors else "ELBO"
    return [
        f"{race.people} rows, {race.covariates} covariates, {race.inducing_points} inducing points; seed {race.seed}",
        "",
        f"| optimiser | {what} | wall s | processor s | of the paper's, wall | of the paper's, processor |",
        "|---|---|---|---|---|---|",
        *(_row(name, reached, race.paper) for name, reached in rows),
    ]


def _row(name: str, reached: Reached, paper: Reached) -> str:
    wall = paper.wall_seconds / reached.wall_seconds
    processor = paper.processor_seconds / reached.processor_seconds
    seconds = f"{reached.wall_seconds:.1f} | {reached.processor_seconds:.1f}"
    return f"| {name} | {reached.objective:.1f} | {seconds} | 1/{wall:.0f} | 1/{processor:.0f} |"


def _path(x: Array, y: Array, recipe: Recipe, seed: int) -> list[Reached]:
    """Objective against time of the model whose f2 varies; the stage before has that of another model."""
    wall, processor = time.perf_counter(), time.process_time()
    path: list[Reached] = []

    def watch(stage: str, fraction: float, objective: float) -> None:
        if stage != CONSTANT_SPREAD:
            path.append(Reached(objective, time.perf_counter() - wall, time.process_time() - processor))

    scaling = Scaling.of(x, y)
    contexts = scaling.standardise(x)
    rng = np.random.default_rng(seed)
    Z = starting_points(contexts, recipe.inducing_points(len(x)), rng)
    Stages(recipe, contexts, scaling.standardise_y(y), rng, watch).train(Z)
    return path
