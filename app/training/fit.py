"""A fit from raw numbers to a NumPy posterior: standardise, choose inducing points, run the stages, export.

The stages run in their order, each tried a second time before it counts as failed. There are two optimisers: full-batch
L-BFGS over all parameters at once, and the paper's, which takes a natural gradient step on q, then an Adam step on
everything else, 40,000 times.
"""

import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import OptimizeResult
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from app.domain.card import StageRecord, TrainingRecord
from app.errors import TrainingFailed
from app.maths.gp.kernels import Kernel
from app.maths.gp.posterior import HeteroscedasticPosterior, Scaling, SparseGP
from app.maths.moments import Array, Moments
from app.training.gpflow_setup import gpflow, tf, tf_keras
from app.training.model import CollapsedSVGP, ConstantSpread, starting_points, untrained
from app.training.recipe import Recipe

Progress = Callable[[str, float], None]  # the stage's name, the share of the whole fit that is done
LIBRARIES = ("numpy", "scipy", "tensorflow", "gpflow")

Watch = Callable[[str, float, float], None]  # the stage's name, the fraction of it that is done, the objective
Loss = Callable[[], Any]
Evaluate = Callable[[Array], tuple[Array, Array]]
Step = Callable[[float, float], None]  # takes the fraction of the work that is done, and the objective so far
Result = TypeVar("Result")

CONSTANT_SPREAD = "constant spread"
VARYING_SPREAD = "varying spread"
STUDENT_NOISE = "Student-t noise"
NATURAL_GRADIENT = "natural gradient and Adam"

# A second attempt starts a little elsewhere, with a Kuu that no rounding makes indefinite.
RESTART_SHIFT = 0.05
RESTART_JITTER = 100.0

# L-BFGS
CORRECTIONS = 20
TOLERANCE = 1e-8  # relative gain of an iteration; the ELBO of a cohort is then settled to about 1e-5

# The paper's optimiser
GAMMA = 0.02  # both from the paper, section "Experiments"
LEARNING_RATE = 0.01
STEPS_PER_CALL = 100  # inside one compiled loop; a call from Python costs as much as a step


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an optimiser reports."""

    iterations: int
    evaluations: int  # of the objective with its gradient
    message: str


Minimise = Callable[[Step], Outcome]


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
    """Trains on standardised data. Afterwards `records` says what happened and `jitter` what Kuu was trained with."""

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
        model = CollapsedSVGP(recipe, self._X, self._y, Z)
        for name, iterations in planned_stages(recipe).items():
            if name == VARYING_SPREAD:
                model.make_heteroscedastic(recipe, Z)
            elif name == STUDENT_NOISE:
                self._with_jitter(lambda: model.make_robust(recipe.robust_freedom))
            self._lbfgs(name, model, iterations)
        return self._with_jitter(model.as_svgp)

    def _lbfgs(self, name: str, model: CollapsedSVGP, iterations: int) -> None:
        loss = model.training_loss_closure(compile=False)
        variables = model.trainable_variables
        self._stage(name, model, loss, lambda step: minimise_by_lbfgs(loss, variables, iterations, step))

    def _by_paper(self, Z: Array) -> Any:
        model = untrained(self._recipe, Z)
        loss = model.training_loss_closure((self._X, self._y[:, None]), compile=False)
        steps = self._recipe.paper_steps
        self._stage(NATURAL_GRADIENT, model, loss, partial(minimise_by_paper, model, loss, steps))
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
            raise TrainingFailed(f"In the stage '{name}' the objective is not finite.") from error
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


def minimise_by_lbfgs(loss: Callable[[], Any], variables: Any, iterations: int, step: Step) -> Outcome:
    optimiser = _GuardedOptimizer()
    done = evaluations = 0

    # SciPy looks at the parameter's name to decide what to pass.
    def callback(intermediate_result: OptimizeResult) -> None:
        nonlocal done
        done += 1
        step(done / iterations, -float(intermediate_result.fun))

    while True:
        before, optimiser.rejected = done, 0
        result = optimiser.minimize(
            loss,
            variables,
            method="L-BFGS-B",
            callback=callback,
            tf_fun_args={"autograph": False},  # there is no Python control flow to convert; a fifth of the tracing time
            options={"maxiter": iterations - done, "maxcor": CORRECTIONS, "ftol": TOLERANCE},
        )
        evaluations += int(result.nfev)
        # A rejected step can leave a line search so short that it looks like convergence: continue with a fresh memory.
        if not optimiser.rejected or done in (before, iterations):
            return Outcome(done, evaluations, str(result.message))


class _GuardedOptimizer(gpflow.optimizers.Scipy):  # type: ignore[misc]
    """Treats a trial step without a finite objective as a very bad one, from which the line search backs off."""

    rejected = 0

    def eval_func(self, *args: Any, **kwargs: Any) -> Evaluate:
        evaluate: Evaluate = super().eval_func(*args, **kwargs)
        worst: float | None = None

        def guarded(x: Array) -> tuple[Array, Array]:
            nonlocal worst
            value, gradient = _or_nan(evaluate, x)
            if np.isfinite(value) and np.isfinite(gradient).all():
                worst = float(value) if worst is None else max(worst, float(value))
                return value, gradient
            if worst is None:
                raise FloatingPointError("no finite objective at the start")
            self.rejected += 1
            return np.array(worst + 1e3 + 10.0 * abs(worst)), np.zeros_like(x)

        return guarded


def _or_nan(evaluate: Evaluate, x: Array) -> tuple[Array, Array]:
    try:
        return evaluate(x)
    except tf.errors.InvalidArgumentError:  # a matrix without a Cholesky factor
        return np.array(np.nan), np.zeros_like(x)


def minimise_by_paper(model: Any, loss: Callable[[], Any], steps: int, step: Step) -> Outcome:
    advance = _compiled(model, loss)
    done = 0
    while done < steps:
        count = min(STEPS_PER_CALL, steps - done)
        objective = -float(advance(tf.constant(count)))
        done += count
        step(done / steps, objective)
    return Outcome(steps, 2 * steps, "all steps taken")


def _compiled(model: Any, loss: Callable[[], Any]) -> Any:
    q = {id(parameter.unconstrained_variable) for parameter in (model.q_mu, model.q_sqrt)}
    others = [variable for variable in model.trainable_variables if id(variable) not in q]
    natural, adam = gpflow.optimizers.NaturalGradient(GAMMA), tf_keras.optimizers.Adam(LEARNING_RATE)
    adam.build(others)

    @tf.function  # type: ignore[untyped-decorator]
    def advance(count: Any) -> Any:
        value = tf.zeros((), tf.float64)
        for _ in tf.range(count):
            natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(others)
                value = loss()
            adam.apply_gradients(zip(tape.gradient(value, others), others, strict=True))
        return value

    return advance


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
        raise TrainingFailed(f"The trained model cannot be exported, even with a jitter of {more.jitter:g}.") from error


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


STOCK_KERNELS = {
    "rational_quadratic": gpflow.kernels.RationalQuadratic,
    "rbf": gpflow.kernels.SquaredExponential,
    "matern52": gpflow.kernels.Matern52,
}


def posterior_of(model: Any, kernel_name: str, scaling: Scaling, jitter: float) -> HeteroscedasticPosterior:
    """The arrays of either model; `jitter` is the one that it was trained with."""
    means = model.mean_function.c.numpy()
    q = zip(model.q_mu.numpy().T, model.q_sqrt.numpy(), strict=True)
    latents = [
        SparseGP.whitened(_kernel(kernel, kernel_name), float(mean), points.Z.numpy(), q_mu, q_sqrt, jitter)
        for kernel, points, mean, (q_mu, q_sqrt) in zip(_kernels(model), _points(model), means, q, strict=True)
    ]
    if isinstance(model.likelihood, ConstantSpread):
        constant = float(model.likelihood.constant.numpy())
        latents.append(SparseGP.constant(kernel_name, constant, len(scaling.x_mean)))
    return HeteroscedasticPosterior(scaling, *latents)


def reference_of(model: Any, kernel_name: str, scaling: Scaling, jitter: float) -> Callable[[Array], Moments]:
    """The same prediction by GPflow as it ships: its own SVGP and kernels around the trained parameters."""
    stock = _stock(model, kernel_name)

    def predict(X: Array) -> Moments:
        with gpflow.config.as_context(gpflow.config.Config(jitter=jitter)):
            mean, variance = (part.numpy().T for part in stock.predict_f(scaling.standardise(X)))
        if len(mean) == 1:
            mean = np.vstack([mean, np.full(len(X), model.likelihood.constant.numpy())])
            variance = np.vstack([variance, np.zeros(len(X))])
        center, scale = scaling.y_center, scaling.y_scale
        return Moments(center + scale * mean[0], scale**2 * variance[0], np.log(scale) + mean[1], variance[1])

    return predict


def _kernels(model: Any) -> list[Any]:
    return list(getattr(model.kernel, "kernels", [model.kernel]))


def _points(model: Any) -> list[Any]:
    return list(getattr(model.inducing_variable, "inducing_variable_list", [model.inducing_variable]))


def _kernel(kernel: Any, name: str) -> Kernel:
    alpha = float(kernel.alpha.numpy()) if name == "rational_quadratic" else 1.0
    return Kernel(name, float(kernel.variance.numpy()), kernel.lengthscales.numpy(), alpha)


def _stock(model: Any, kernel_name: str) -> Any:
    kernels = [_stock_kernel(kernel, kernel_name) for kernel in _kernels(model)]
    return gpflow.models.SVGP(
        gpflow.kernels.SeparateIndependent(kernels) if len(kernels) > 1 else kernels[0],
        model.likelihood,
        model.inducing_variable,
        mean_function=model.mean_function,
        num_latent_gps=len(kernels),
        q_mu=model.q_mu.numpy(),
        q_sqrt=model.q_sqrt.numpy(),
    )


def _stock_kernel(kernel: Any, name: str) -> Any:
    stock = STOCK_KERNELS[name]()
    stock.variance, stock.lengthscales = kernel.variance, kernel.lengthscales
    if name == "rational_quadratic":
        stock.alpha = kernel.alpha
    return stock
