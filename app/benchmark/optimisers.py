"""How long the staged L-BFGS takes to the ELBO that the paper's optimiser ends at.

Both maximise the plain ELBO, without priors, of one model from the same inducing points, with the same closed-form
data term on one thread. Both clocks run from the bare arrays on: building, tracing and compiling count.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from app.maths.moments import Array
from app.maths.scaling import Scaling
from app.training.inducing import starting_points
from app.training.recipe import Recipe
from app.training.stages import CONSTANT_SPREAD, Stages


@dataclass(frozen=True, slots=True)
class Reached:
    """An ELBO and when it was reached. Processor time does not count what other work took from the machine."""

    elbo: float
    wall_seconds: float
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class Race:
    people: int
    covariates: int
    inducing_points: int
    seed: int
    paper_steps: int
    paper: Reached  # after all its steps
    staged: Reached  # after all stages
    overtaking: Reached | None  # the first iteration at or above the paper's ELBO; None if there was none


def measure(x: Array, y: Array, steps: int, seed: int) -> Race:
    """From raw covariates x [N, D] and targets y [N]."""
    by_paper = Recipe(optimiser="paper", paper_steps=steps, priors=False, start_log_sd=math.log(0.5))
    by_stages = Recipe(priors=False)
    people, covariates = x.shape
    points = min(by_paper.inducing_points(people), len(np.unique(x, axis=0)))
    paper = _path(x, y, by_paper, seed)[-1]
    path = _path(x, y, by_stages, seed)
    overtaking = next((reached for reached in path if reached.elbo >= paper.elbo), None)
    return Race(people, covariates, points, seed, steps, paper, path[-1], overtaking)


def render(race: Race) -> list[str]:
    """Markdown lines."""
    rows = [(f"natural gradient and Adam, {race.paper_steps} steps", race.paper), ("staged L-BFGS", race.staged)]
    if race.overtaking:
        rows.append(("staged L-BFGS, at the paper's ELBO", race.overtaking))
    return [
        f"{race.people} people, {race.covariates} covariates, {race.inducing_points} inducing points; seed {race.seed}",
        "",
        "| optimiser | ELBO | wall s | processor s | of the paper's, wall | of the paper's, processor |",
        "|---|---|---|---|---|---|",
        *(_row(name, reached, race.paper) for name, reached in rows),
    ]


def _row(name: str, reached: Reached, paper: Reached) -> str:
    wall = paper.wall_seconds / reached.wall_seconds
    processor = paper.processor_seconds / reached.processor_seconds
    seconds = f"{reached.wall_seconds:.1f} | {reached.processor_seconds:.1f}"
    return f"| {name} | {reached.elbo:.1f} | {seconds} | 1/{wall:.0f} | 1/{processor:.0f} |"


def _path(x: Array, y: Array, recipe: Recipe, seed: int) -> list[Reached]:
    """ELBO against time of the model whose f2 varies; the stage before has the ELBO of another model."""
    wall, processor = time.perf_counter(), time.process_time()
    path: list[Reached] = []

    def watch(stage: str, fraction: float, elbo: float) -> None:
        if stage != CONSTANT_SPREAD:
            path.append(Reached(elbo, time.perf_counter() - wall, time.process_time() - processor))

    scaling = Scaling.of(x, y)
    contexts = scaling.standardise(x)
    rng = np.random.default_rng(seed)
    Z = starting_points(contexts, recipe.inducing_points(len(x)), rng)
    Stages(recipe, contexts, scaling.standardise_y(y), rng, watch).train(Z)
    return path
