"""The stages of a training in their order, each tried a second time before it counts as failed."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from app.domain.card import StageRecord
from app.errors import TrainingFailed
from app.maths.moments import Array
from app.training import lbfgs, paper_optimiser
from app.training.collapsed import Collapsed
from app.training.outcome import Outcome, Step
from app.training.recipe import Recipe
from app.training.stack import gpflow, tf
from app.training.svgp import untrained

Watch = Callable[[str, float, float], None]  # the stage's name, the fraction of it that is done, the objective
Loss = Callable[[], Any]
Minimise = Callable[[Step], Outcome]
Result = TypeVar("Result")

CONSTANT_SPREAD = "constant spread"
VARYING_SPREAD = "varying spread"
STUDENT_NOISE = "Student-t noise"
NATURAL_GRADIENT = "natural gradient and Adam"

# A second attempt starts a little elsewhere, with a Kuu that no rounding makes indefinite.
RESTART_SHIFT = 0.05
RESTART_JITTER = 100.0


def planned_stages(recipe: Recipe) -> dict[str, int]:
    """The stages in their order, each with the iterations that it may take."""
    if recipe.optimiser == "paper":
        return {NATURAL_GRADIENT: recipe.paper_steps}
    # Where f2 stays constant its stage may take all the iterations.
    first = recipe.constant_iterations + (0 if recipe.heteroscedastic else recipe.released_iterations)
    stages = {CONSTANT_SPREAD: first} if first else {}
    if recipe.heteroscedastic:
        stages[VARYING_SPREAD] = recipe.released_iterations
    if recipe.robust:
        stages[STUDENT_NOISE] = recipe.robust_iterations
    return stages


class Stages:
    """Trains on standardised data. Afterwards `records` tells what happened, `jitter` what Kuu was trained with."""

    def __init__(self, recipe: Recipe, X: Array, y: Array, rng: np.random.Generator, watch: Watch) -> None:
        self.records: list[StageRecord] = []
        self.jitter = recipe.jitter
        self._recipe = recipe
        self._X, self._y = X, y
        self._rng = rng
        self._watch = watch

    def train(self, Z: Array) -> Any:
        """The trained SVGP, from inducing points that start at Z."""
        # SciPy's L-BFGS calls BLAS on vectors of some hundred numbers: threads only cost there, and move last digits.
        with threadpool_limits(limits=1, user_api="blas"):
            return self._by_paper(Z) if self._recipe.optimiser == "paper" else self._by_lbfgs(Z)

    def _by_lbfgs(self, Z: Array) -> Any:
        recipe = self._recipe
        model = Collapsed(recipe, self._X, self._y, Z)
        for name, iterations in planned_stages(recipe).items():
            if name == VARYING_SPREAD:
                model.release(recipe, Z)
            elif name == STUDENT_NOISE:
                self._with_jitter(lambda: model.make_robust(recipe.robust_freedom))
            self._lbfgs(name, model, iterations)
        return self._with_jitter(model.as_svgp)

    def _lbfgs(self, name: str, model: Collapsed, iterations: int) -> None:
        loss = model.training_loss_closure(compile=False)
        variables = model.trainable_variables
        self._stage(name, model, loss, lambda step: lbfgs.minimise(loss, variables, iterations, step))

    def _by_paper(self, Z: Array) -> Any:
        model = untrained(self._recipe, Z)
        loss = model.training_loss_closure((self._X, self._y[:, None]), compile=False)
        steps = self._recipe.paper_steps
        self._stage(NATURAL_GRADIENT, model, loss, partial(paper_optimiser.minimise, model, loss, steps))
        return model

    def _stage(self, name: str, model: Any, loss: Loss, minimise: Minimise) -> None:
        start = [variable.numpy() for variable in model.trainable_variables]
        try:
            record = self._attempt(name, model, loss, minimise)
        except TrainingFailed as first:
            self.jitter *= RESTART_JITTER
            for variable, value in zip(model.trainable_variables, start, strict=True):
                variable.assign(value + RESTART_SHIFT * self._rng.normal(size=value.shape))
            again = self._attempt(name, model, loss, minimise)
            record = replace(again, message=f"{again.message} (second attempt, jitter {self.jitter:g}, after: {first})")
        self.records.append(record)
        self._watch(name, 1.0, record.objective)

    def _attempt(self, name: str, model: Any, loss: Loss, minimise: Minimise) -> StageRecord:
        began = time.perf_counter()
        try:
            outcome = self._with_jitter(lambda: minimise(partial(self._watch, name)))
            objective = _finite(-self._with_jitter(loss))
        except (FloatingPointError, tf.errors.InvalidArgumentError) as error:
            raise TrainingFailed(f"In the stage '{name}' the objective is not a finite number.") from error
        elbo = objective - float(model.log_prior_density())
        seconds = time.perf_counter() - began
        return StageRecord(name, outcome.iterations, outcome.evaluations, objective, elbo, seconds, outcome.message)

    def _with_jitter(self, work: Callable[[], Result]) -> Result:
        with gpflow.config.as_context(gpflow.config.Config(jitter=self.jitter)):
            return work()


def _finite(value: Any) -> float:
    if not math.isfinite(number := float(value)):
        raise FloatingPointError(number)
    return number
