"""A fit from raw numbers to a NumPy posterior: standardise, place inducing points, run the stages, export."""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from app.domain.card import TrainingRecord
from app.maths.moments import Array, Moments
from app.maths.posterior import HeteroscedasticPosterior
from app.maths.scaling import Scaling
from app.training.export import posterior_of, reference_of
from app.training.inducing import starting_points
from app.training.recipe import Recipe
from app.training.stages import Stages, Watch

Progress = Callable[[str, float], None]  # the stage's name, the fraction of it that is done
LIBRARIES = ("numpy", "scipy", "tensorflow", "gpflow")


@dataclass(frozen=True, slots=True)
class Fit:
    posterior: HeteroscedasticPosterior
    record: TrainingRecord
    reference: Callable[[Array], Moments]  # GPflow's own prediction, raw units


def fit(X: Array, y: Array, recipe: Recipe, seed: int, progress: Progress | None = None) -> Fit:
    """Train on raw covariates X [N, D] and diameters y [N] in mm. The same seed gives the same model."""
    rng = np.random.default_rng(seed)
    scaling = Scaling.of(X, y)
    contexts = scaling.standardise(X)
    Z = starting_points(contexts, recipe.inducing_points(len(X)), rng)
    stages = Stages(recipe, contexts, scaling.standardise_y(y), rng, _watch(progress))
    model = stages.train(Z)
    record = TrainingRecord(recipe.as_dict(), seed, len(Z), tuple(stages.records), _libraries())
    trained = model, recipe.kernel, scaling, stages.jitter
    return Fit(posterior_of(*trained), record, reference_of(*trained))


def _watch(progress: Progress | None) -> Watch:
    return lambda stage, fraction, objective: progress(stage, fraction) if progress else None


def _libraries() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}
