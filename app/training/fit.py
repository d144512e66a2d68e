"""A fit from raw numbers to a NumPy posterior: standardise, place inducing points, run the stages, export."""

import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np

from app.domain.card import TrainingRecord
from app.errors import TrainingFailed
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.maths.gp.scaling import Scaling
from app.maths.moments import Array, Moments
from app.training.export import posterior_of, reference_of
from app.training.inducing import starting_points
from app.training.recipe import Recipe
from app.training.stages import RESTART_JITTER, Stages, Watch, planned_stages

Progress = Callable[[str, float], None]  # the stage's name, the share of the whole fit that is done
LIBRARIES = ("numpy", "scipy", "tensorflow", "gpflow")


@dataclass(frozen=True, slots=True)
class Fit:
    posterior: HeteroscedasticPosterior
    record: TrainingRecord
    reference: Callable[[Array], Moments]  # GPflow's own prediction, raw units


def fit(X: Array, y: Array, recipe: Recipe, seed: int, progress: Progress | None = None) -> Fit:
    """Train on raw covariates X [N, D] and diameters y [N] in mm. The same seed gives the same model.

    Where the data have next to no noise, f1's variance may grow until its inducing points can be factorised in one
    library and, by a rounding error, not in the other. Such a model is trained again with more jitter; the recipe in
    its record is the one that was used.
    """
    try:
        return _fit(X, y, recipe, seed, progress)
    except np.linalg.LinAlgError:
        more = replace(recipe, jitter=RESTART_JITTER * recipe.jitter)
    try:
        return _fit(X, y, more, seed, progress)
    except np.linalg.LinAlgError as error:
        raise TrainingFailed(f"The trained model cannot be exported, also with a jitter of {more.jitter:g}.") from error


def _fit(X: Array, y: Array, recipe: Recipe, seed: int, progress: Progress | None) -> Fit:
    rng = np.random.default_rng(seed)
    scaling = Scaling.of(X, y)
    contexts = scaling.standardise(X)
    Z = starting_points(contexts, recipe.inducing_points(len(X)), rng)
    stages = Stages(recipe, contexts, scaling.standardise_y(y), rng, _watch(recipe, progress))
    model = stages.train(Z)
    record = TrainingRecord(recipe.as_dict(), seed, len(Z), tuple(stages.records), _libraries())
    trained = model, recipe.kernel, scaling, stages.jitter
    return Fit(posterior_of(*trained), record, reference_of(*trained))


def _watch(recipe: Recipe, progress: Progress | None) -> Watch:
    planned, begins, total = planned_stages(recipe), {}, 0
    for stage, iterations in planned.items():
        begins[stage], total = total, total + iterations

    def watch(stage: str, fraction: float, objective: float) -> None:
        if progress:
            progress(stage, (begins[stage] + fraction * planned[stage]) / total)

    return watch


def _libraries() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}
