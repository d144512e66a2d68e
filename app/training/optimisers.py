"""The two optimisers: full-batch L-BFGS over all parameters at once, and the paper's.

The paper's takes a natural gradient step on q, then an Adam step on everything else, 40,000 times.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from app.maths.moments import Array
from app.training.gpflow_setup import gpflow, tf, tf_keras

Evaluate = Callable[[Array], tuple[Array, Array]]
Step = Callable[[float, float], None]  # takes the fraction of the work that is done, and the objective so far

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


def minimise_by_lbfgs(loss: Callable[[], Any], variables: Any, iterations: int, step: Step) -> Outcome:
    optimiser = _Guarded()
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


class _Guarded(gpflow.optimizers.Scipy):  # type: ignore[misc]
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
